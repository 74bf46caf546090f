"""How to capture next time what is missing: one sentence, and the fields of a record to fill.

The snippets are pieces of a native record (docs/record-format.md).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Fix:
    """What to do so that the next run has it."""

    sentence: str
    code: str | None = None


_TOOL_ANSWERS = "Record each tool's result, or the error text the model was given."


FIXES: dict[str, Fix] = {
    "ids": Fix(
        sentence="Give every run its own run_id, and every step the index of its parent step.",
        code='{"run_id": "r_8821", "steps": [{"kind": "model"}, {"kind": "tool", "parent": 1}]}',
    ),
    "identity": Fix(
        sentence="Put user_id and tenant_id on the run and pass both to every tool step.",
        code='{"user_id": "u_7710", "tenant_id": "t_12", "session_id": "s_301",\n'
        ' "steps": [{"kind": "tool", "user_id": "u_7710", "tenant_id": "t_12"}]}',
    ),
    "input": Fix(
        sentence="Store the input as it arrived, before trimming, templating or parsing it.",
        code='{"input": "where is my order?"}   or   {"input": {"base64": "…", "media_type": "…"}}',
    ),
    "instructions": Fix(
        sentence="Record the resolved text that was sent with the request, "
        "not the name of a prompt or the object that makes it.",
        code='{"instructions": "You help customers with their orders."}',
    ),
    "tool_schemas": Fix(
        sentence="Record the tool definitions with each model step; equal ones are stored once.",
        code='{"tools": [{"name": "lookup_order", "parameters_json_schema": {"type": "object"}}],\n'
        ' "steps": [{"kind": "model", "tools": [0]}]}',
    ),
    "retrieval": Fix(
        sentence="Record each search as a retrieval step with id, score and text of every chunk.",
        code='{"kind": "retrieval", "query": "refund policy", "embedding_version": "e5-large-2",\n'
        ' "chunks": [{"id": "kb_17#3", "score": 0.82, "content": "Refunds within 30 days …"}]}',
    ),
    "model": Fix(
        sentence="Record model id, provider and region with each model step.",
        code='{"kind": "model", "model": "sonnet-4", "answered_model": "sonnet-4-2511",\n'
        ' "provider": "anthropic", "region": "eu-west-1"}',
    ),
    "sampling": Fix(
        sentence="Set temperature, top_p and seed on purpose and record them with each model step.",
        code='{"kind": "model", "settings": {"temperature": 0, "top_p": 1, "seed": 42}}',
    ),
    "tool_io": Fix(
        sentence="Record what each tool was asked and what it answered, errors too, and the HTTP exchange behind it, "
        "which the recorder keeps with http=True. For a tool that sends no HTTP, its values are all there is.",
        code='{"kind": "tool", "tool_name": "lookup_order", "call_id": "call_1",\n'
        ' "arguments": {"order_id": "ORD-5521"}, "result": "2x Widget Pro, shipped",\n'
        ' "http": {"method": "GET", "url": "https://…", "status": 200, "response_body": "…"}}',
    ),
    "timestamps": Fix(
        sentence="Record start, first token and duration of every step.",
        code='{"started_at": "2026-02-17T14:23:01.120Z", "duration_ms": 1420,\n'
        ' "first_token_at": "2026-02-17T14:23:01.480Z"}',
    ),
    "commit": Fix(
        sentence="Put the commit into the environment when the code is built, and record it.",
        code='{"code": {"commit": "9f2c1e7", "dirty": false}}',
    ),
    "flags": Fix(
        sentence="Record the feature flags as resolved for this user; {} when there are none.",
        code='{"flags": {"new_refund_flow": true}}',
    ),
    "history_turns": Fix(
        sentence="Record the messages of earlier turns that the run started from, all of them.",
        code='{"prior": [{"kind": "request",\n "parts": [{"part_kind": "user-prompt", "content": "Hi"}]}]}',
    ),
    "embedding_version": Fix(
        sentence="Record the version of the embedding model on every retrieval step.",
        code='{"kind": "retrieval", "embedding_version": "e5-2", "index_version": "2026-02-16"}',
    ),
    "nothing_recorded": Fix(sentence="Send the messages of the run, or its steps."),
    "only_final_output": Fix(
        sentence="Save all messages of the run; the output alone does not show how the run got there."
    ),
    "model_request_missing": Fix(sentence="Record the messages of every model call as its `request`."),
    "model_answers_missing": Fix(
        sentence="Record the answer of every model call as its `response`; "
        "some instrumentation leaves content out unless it is switched on."
    ),
    "first_model_answer_missing": Fix(sentence="Record the answer of every model call as its `response`."),
    "model_answer_missing": Fix(sentence="Record the answer of every model call, or the error it ended in."),
    "tool_answers_missing": Fix(sentence=_TOOL_ANSWERS),
    "tool_answer_missing": Fix(sentence=_TOOL_ANSWERS),
    "other_course": Fix(sentence="Record every model call, and record agents that work in parallel as separate runs."),
    "tool_not_offered": Fix(sentence="With each request, record all tools that were offered to the model."),
    "answer_cut_short": Fix(sentence="Send requests with the whole answers of tools; raise the limit that cuts them."),
    "answer_read_once": Fix(
        sentence="Let the tool return a list: its span reads a generator, and leaves nothing of it."
    ),
    "answer_contradicted": Fix(sentence="Record each tool result exactly as it was sent to the model."),
    "spelling_contradicted": Fix(
        sentence="Record arguments and numbers in one spelling everywhere: 1.0 and 1.00 are different texts to a model."
    ),
    "http_contradicted": Fix(sentence="With each model answer, record the HTTP exchange of that request."),
    "facts_contradicted": Fix(
        sentence="Record of each model answer the model, provider and finish reason that it names."
    ),
    "instructions_changed": Fix(sentence="Record the instructions of each request, and whether code makes them."),
    "instructions_contradicted": Fix(sentence="Set `instructions` to what was sent with the first request."),
    "tools_contradicted": Fix(sentence="Send each tool as the request held it, in `tools` and `parameters` alike."),
    "model_contradicted": Fix(sentence="Set `model` to the model named in the first request, or leave it out."),
    "calls_contradicted": Fix(sentence="List in `tool_calls` the calls that the messages hold, or leave it out."),
    "agent_contradicted": Fix(sentence="Record the agent of each step, and with each handoff the one that took over."),
    "call_ids_doubled": Fix(sentence="Save each call with the id that the model gave it; no two have the same one."),
    "items_not_read": Fix(sentence="Record the run with the recorder, which keeps what `items` alone cannot tell."),
    "items_contradicted": Fix(sentence="Record in `items` what the run's messages hold, or leave it out."),
    "tool_step_missing": Fix(sentence="Record a tool step, with its call id, for every call that the model asks for."),
    "outcome_contradicts": Fix(
        sentence="Record one outcome: `output` with the status ok, `error` with error, neither for a run that waits."
    ),
    "call_contradicted": Fix(sentence="Record each call once, under the name that the model asked for."),
    "call_of_no_answer": Fix(
        sentence="Record the answer that asked for the call; replay calls that your own code makes with that code."
    ),
    "message_from_code": Fix(
        sentence="Replay this run with your registered agent, and let its tools run where one of them put it there."
    ),
    "past_rewritten": Fix(sentence="Replay this run with your registered agent, whose code rewrites the messages."),
    "answer_not_raw": Fix(
        sentence="Record the run with the recorder: if a hook changes an answer, it also keeps the one the model gave."
    ),
    "tool_not_run": Fix(
        sentence="Replay this run with the tools of your agent running: mode code_and_tools, or --tools run."
    ),
    "sent_otherwise": Fix(
        sentence="Put the words into the agent's history (`ctx.enqueue`, a history processor), which is recorded."
    ),
    "retry_contradicted": Fix(sentence="Set `retry` of a step to what the message that reports the retry contains."),
    "retry_from_outside": Fix(sentence="Replay this run with your registered agent, or fork it after this call."),
    "value_cut": Fix(sentence="Let tools take and give values of at most 100 levels and 200,000 entries."),
    "output_missing": Fix(sentence="Record the result of the run as its `output`, or the error as its `error`."),
    "output_differs": Fix(sentence="Set `output` to the final result of the agent's loop."),
    "output_function": Fix(sentence="Read the answer in the recording; an output function does not run in a replay."),
    "last_message_taken": Fix(
        sentence="Replay the run with your own code, in the SDK's own loop; the recording holds all of the messages."
    ),
    "output_made_by_code": Fix(
        sentence="Replay the run with your own code to see what it does with the answer; "
        "a replay of the recording alone cannot."
    ),
    "error_missing": Fix(sentence="Record the type and the message of the error that the run ended with."),
    "error_outside_loop": Fix(
        sentence="Replay the run with your own code to see whether it raises the error again; "
        "a replay of the recording alone cannot."
    ),
    "begins_with_nothing": Fix(sentence="Start the run with a user message."),
    "input_contradicts": Fix(sentence="Set `input` to exactly what the run was started with."),
    "prompts_beside_input": Fix(sentence="Start the run with the earlier prompts in its input, or with their answers."),
    "calls_not_saved": Fix(sentence="Save `all_messages()` of the run; `new_messages()` begins behind the open calls."),
    "prompt_missing": Fix(sentence="End each request with a message of a user or of a tool, and record it."),
    "attempt_as_step": Fix(sentence="Record one step for each request, with its failed attempts inside it."),
    "past_contradicted": Fix(
        sentence="Record what each request originally contained, and in `rewritten` what code changed it to."
    ),
    "too_many_turns": Fix(sentence="Read the end in the recording; nothing is missing from it."),
    "history_rewritten": Fix(sentence="Read the later steps in the recording; a replay has none of your code."),
    "asked_again": Fix(sentence="Read the later steps in the recording; a replay words the request differently."),
    "empty_answer": Fix(sentence="Read the answer in the recording; nothing is missing from it."),
    "call_not_made": Fix(sentence="Read the answer in the recording; nothing is missing from it."),
    "ended_by_tools": Fix(sentence="Read the answer in the recording; a replay has none of your code."),
    "input_missing": Fix(sentence="Record the input of the run, or the messages of its first request."),
}

_READ_ON = Fix(sentence="Read on in the recording, or fork the run after this step; a replay has none of your code.")
WITHOUT_OWN_CODE: dict[str, Fix] = {
    "message_from_code": _READ_ON,
    "past_rewritten": _READ_ON,
    "retry_from_outside": Fix(sentence="Fork the run after this call; a replay has none of your code."),
    "output_made_by_code": Fix(sentence="Read the output in the recording; a replay has none of your code."),
    "error_outside_loop": Fix(sentence="Read the error in the recording; a replay has none of your code."),
}
"""In place of a replay with the team's code, for agents that cannot be registered."""
