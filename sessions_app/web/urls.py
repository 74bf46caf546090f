"""The addresses of the pages."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path, register_converter

from sessions_app.web.account import views as account_views
from sessions_app.web.cold import views as cold_views
from sessions_app.web.costs import views as cost_views
from sessions_app.web.diff import twin_views
from sessions_app.web.diff import views as diff_views
from sessions_app.web.find import palette
from sessions_app.web.find import views as find_views
from sessions_app.web.forks import tree_views as forks_views
from sessions_app.web.forks import views as fork_views
from sessions_app.web.forks import what_if as what_if_views
from sessions_app.web.goldens import batch_views as golden_batch_views
from sessions_app.web.goldens import failure_views
from sessions_app.web.goldens import new_views as new_golden_views
from sessions_app.web.goldens import views as golden_views
from sessions_app.web.notes import views as note_views
from sessions_app.web.now import views as now_views
from sessions_app.web.projects import anomaly_views, invitation_views, model_views, price_views, redaction_views
from sessions_app.web.projects import views as project_views
from sessions_app.web.recorded_ids import RecordedId, ReportSuffix, Signal
from sessions_app.web.replays import options as replay_options
from sessions_app.web.replays import session_views as session_replay_views
from sessions_app.web.replays import stop_views
from sessions_app.web.replays import views as replay_views
from sessions_app.web.session_list import bulk_all, saved_views
from sessions_app.web.session_list import bulk_views as list_bulk_views
from sessions_app.web.session_list import columns as list_columns
from sessions_app.web.session_list import views as session_list_views
from sessions_app.web.sessions import arrival, export_views
from sessions_app.web.sessions import views as session_views
from sessions_app.web.setup import package_views, upload_views
from sessions_app.web.setup import views as setup_views
from sessions_app.web.shared import link_views as share_views
from sessions_app.web.shared import views as shared_views
from sessions_app.web.steps import views as step_views
from sessions_app.web.storage import views as storage_views
from sessions_app.web.tags import views as tag_views
from sessions_app.web.tools import views as tool_views
from sessions_app.web.traces import views as raw_spans
from sessions_app.web.workflow import views as workflow_views

register_converter(RecordedId, "recorded_id")
register_converter(ReportSuffix, "suffix")
register_converter(Signal, "signal")

of_a_project: list[URLPattern | URLResolver] = [
    path("", now_views.now, name="project"),
    path("setup", setup_views.setup, name="setup"),
    path("setup/waiting", setup_views.waiting, name="setup_waiting"),
    path("setup/keys", setup_views.create_key, name="create_key"),
    path("upload", upload_views.upload, name="upload"),
    path("examples/remove", setup_views.remove_examples, name="remove_examples"),
    path("examples/load", setup_views.load_examples, name="load_examples"),
    path("sessions", session_list_views.sessions, name="sessions"),
    path("palette", palette.palette, name="palette"),
    path("sessions/suggestions", session_list_views.suggestions, name="suggestions"),
    path("sessions/saved", saved_views.save, name="save_query"),
    path("sessions/saved/<int:query>/delete", saved_views.delete, name="delete_query"),
    path("sessions/columns", list_columns.choose, name="choose_columns"),
    path("sessions/bulk", list_bulk_views.bulk, name="bulk"),
    path("bulk-jobs/<slug:bulk_job_id>", bulk_all.bulk_job, name="bulk_job"),
    path("s/<recorded_id:session_id>", session_views.session, name="session"),
    path("s/<recorded_id:session_id>/steps/<int:n>", step_views.step, name="step"),
    path("s/<recorded_id:session_id>/steps/<int:n>/what-if", what_if_views.what_if, name="what_if"),
    path("s/<recorded_id:session_id>/replay", replay_views.replay_session, name="replay_session"),
    path("s/<recorded_id:session_id>/replay-all", session_replay_views.replay_all, name="replay_all"),
    path("s/<recorded_id:session_id>/fork", fork_views.fork, name="fork"),
    path("s/<recorded_id:session_id>/replay-options", replay_options.replay_options, name="replay_options"),
    path("s/<recorded_id:session_id>/forks", forks_views.forks, name="forks"),
    path("s/<recorded_id:session_id>/golden", new_golden_views.new_golden, name="new_golden"),
    path("s/<recorded_id:session_id>/workflow", workflow_views.workflow_page, name="workflow"),
    path("s/<recorded_id:session_id>/twins", twin_views.twins, name="good_twins"),
    path("s/<recorded_id:session_id>/record", session_views.record, name="record"),
    path("s/<recorded_id:session_id>/otlp", export_views.otlp, name="otlp"),
    path("s/<recorded_id:session_id>/case-file", export_views.case_file, name="case_file"),
    path("s/<recorded_id:session_id>/arriving", arrival.arriving, name="arriving"),
    path("s/<recorded_id:session_id>/share", share_views.share, name="share"),
    path("s/<recorded_id:session_id>/share/<int:link>/revoke", share_views.revoke, name="revoke_share"),
    path("s/<recorded_id:session_id>/cold", cold_views.mark, name="mark_cold"),
    path("s/<recorded_id:session_id>/cold/take-back", cold_views.take_back, name="take_back_cold"),
    path("s/<recorded_id:session_id>/tags", tag_views.tag, name="tag_session"),
    path("s/<recorded_id:session_id>/notes", note_views.write, name="write_note"),
    path("notes/<int:note>/delete", note_views.delete, name="delete_note"),
    path("traces", raw_spans.unread, name="unread_traces"),
    path("traces/<slug:trace_id>", raw_spans.trace, name="trace"),
    path("traces/<slug:trace_id>/<signal:signal>.json", raw_spans.spans_file, name="spans_file"),
    path("traces/<slug:trace_id>/<slug:span_id>/<int:number>", raw_spans.span_value, name="span_value"),
    path("settings", project_views.settings, name="project_settings"),
    path("settings/name", project_views.rename, name="rename_project"),
    path("settings/prices", price_views.prices, name="prices"),
    path("settings/prices/list", price_views.take_list_price, name="take_list_price"),
    path("settings/prices/<int:price>/delete", price_views.delete, name="delete_price"),
    path("settings/models", model_views.models, name="models"),
    path("settings/models/<int:model>", model_views.model, name="model"),
    path("settings/models/<int:model>/test", model_views.test, name="test_model"),
    path("settings/models/<int:model>/remove", model_views.remove, name="remove_model"),
    path("settings/anomalies", anomaly_views.anomalies, name="anomaly_rules"),
    path("settings/redaction", redaction_views.rules, name="redaction"),
    path("settings/redaction/try", redaction_views.tried, name="try_redaction"),
    path("settings/redaction/stored", redaction_views.stored, name="stored_redaction"),
    path("settings/redaction/stored/change", redaction_views.change_stored, name="change_stored_redaction"),
    path("settings/members/<int:member>/role", project_views.change_role, name="change_role"),
    path("settings/members/<int:member>/remove", project_views.remove, name="remove_member"),
    path("settings/invitations", project_views.invite, name="invite"),
    path("settings/invitations/<int:invitation>/take-back", project_views.take_back, name="take_back_invitation"),
    path("settings/keys/<int:key>/rotate", project_views.rotate, name="rotate_key"),
    path("settings/keys/<int:key>/revoke", project_views.revoke, name="revoke_key"),
    path("goldens", golden_views.goldens, name="goldens"),
    path("goldens/dataset.jsonl", golden_views.dataset, name="golden_dataset"),
    path("goldens/export", golden_views.export_many, name="export_goldens"),
    path("goldens/failures", failure_views.failures, name="failure_groups"),
    path("goldens/failures/replay", failure_views.replay_failures, name="replay_failures"),
    path("goldens/run", golden_views.run_all, name="run_goldens"),
    path("goldens/<slug:golden_id>", golden_views.golden, name="golden"),
    path("goldens/<slug:golden_id>/run", golden_views.run_one, name="run_golden"),
    path("goldens/<slug:golden_id>/quarantine", golden_views.set_quarantine, name="quarantine_golden"),
    path("goldens/<slug:golden_id>/delete", golden_views.delete, name="delete_golden"),
    path("goldens/<slug:golden_id>/export", golden_views.export, name="export_golden"),
    path("golden-runs/<slug:golden_run_id>", golden_views.golden_run, name="golden_run"),
    path("golden-batches/<slug:golden_batch_id>", golden_batch_views.batch, name="golden_batch"),
    path("golden-batches/<slug:golden_batch_id>/resume", golden_batch_views.resume, name="resume_golden_batch"),
    path("golden-batches/<slug:golden_batch_id>/cancel", golden_batch_views.cancel, name="cancel_golden_batch"),
    path(
        "golden-batches/<slug:golden_batch_id>/report.<slug:suffix>",
        golden_batch_views.report,
        name="golden_batch_report",
    ),
    path("cold", cold_views.cold, name="cold"),
    path("tools", tool_views.tools, name="tools"),
    path("costs", cost_views.costs, name="costs"),
    path("storage", storage_views.storage, name="storage"),
    path("replays", replay_views.replays, name="replays"),
    path("replays/<slug:replay_id>", replay_views.replay, name="replay"),
    path("replays/<slug:replay_id>/cancel", replay_views.cancel, name="cancel_replay"),
    path("replays/<slug:replay_id>/again", replay_views.again, name="replay_again"),
    path("replays/<slug:replay_id>/answer", stop_views.answer, name="answer_by_hand"),
    path("replays/<slug:replay_id>/continue", stop_views.go_on, name="continue_replay"),
    path("replays/<slug:replay_id>/step", stop_views.one_step, name="step_replay"),
    path("replays/<slug:replay_id>/report.<suffix:suffix>", replay_views.report, name="replay_report"),
    path("session-replays/<slug:session_replay_id>", session_replay_views.session_replay, name="session_replay"),
    path("session-replays/<slug:session_replay_id>/cancel", session_replay_views.cancel, name="cancel_session_replay"),
    path("session-replays/<slug:session_replay_id>/again", session_replay_views.again, name="session_replay_again"),
    path(
        "session-replays/<slug:session_replay_id>/report.<suffix:suffix>",
        session_replay_views.report,
        name="session_replay_report",
    ),
    path("diff/<recorded_id:left>...<recorded_id:right>", diff_views.diff, name="diff"),
    path("diff-viewed", diff_views.mark_viewed, name="diff_viewed"),
    path("payloads/<slug:digest>", step_views.payload, name="payload"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", find_views.home, name="home"),
    path("find", find_views.find, name="find"),
    path("sign-in", account_views.sign_in, name="sign_in"),
    path("sign-out", account_views.sign_out, name="sign_out"),
    path("me", account_views.me, name="me"),
    path("me/sessions/end", account_views.end_sign_in, name="end_sign_in"),
    path("me/password", account_views.password, name="password"),
    path("packages/<str:name>", package_views.package, name="package"),
    path("projects/new", project_views.new_project, name="new_project"),
    path("invitations/<str:token>", invitation_views.invitation, name="invitation"),
    path("shared/<str:token>", shared_views.session, name="shared"),
    path("shared/<str:token>/steps/<int:n>", shared_views.step, name="shared_step"),
    path("shared/<str:token>/payloads/<slug:digest>", shared_views.payload, name="shared_payload"),
    path("p/<slug:project>/", include(of_a_project)),
]
