"""Every route of the API with every kind of key: the exact status, and nothing of another project."""

import re

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from sessions_app.models import ApiKey, Golden, GoldenBatch, GoldenRun, Replay, Run, SessionReplay
from sessions_app.models.projects import KeyScope
from sessions_app.services.keys import revoke_key
from tests.builders import (
    make_client,
    make_key,
    make_project,
    make_record,
    make_tool_step,
    post_run,
    project_client,
    row_counts,
)

pytestmark = pytest.mark.django_db
RUN = "/api/v1/runs/{path:run_id}"
GOLDEN = "/api/v1/goldens/{golden_id}"
BATCH = "/api/v1/golden-batches/{golden_batch_id}"
SESSION_REPLAY = "/api/v1/session-replays/{session_replay_id}"
# method and route: status for an ingest key, a full key, a full key of another project. Without a key it is always 401.
TABLE = {
    ("GET", "/api/v1/me"): (200, 200, 200),
    ("GET", "/api/v1/version"): (200, 200, 200),
    ("GET", "/api/v1/agents"): (403, 200, 200),
    ("GET", "/api/v1/projects"): (403, 200, 200),
    ("POST", "/api/v1/projects"): (
        403,
        403,
        403,
    ),  # these need scope admin: test_projects.py, test_redaction.py
    ("PATCH", "/api/v1/projects/{slug:project}"): (403, 403, 403),
    ("GET", "/api/v1/members"): (403, 403, 403),
    ("PATCH", "/api/v1/members/{username}"): (403, 403, 403),
    ("DELETE", "/api/v1/members/{username}"): (403, 403, 403),
    ("GET", "/api/v1/invitations"): (403, 403, 403),
    ("POST", "/api/v1/invitations"): (403, 403, 403),
    ("DELETE", "/api/v1/invitations/{int:invitation_id}"): (403, 403, 403),
    ("GET", "/api/v1/keys"): (403, 403, 403),
    ("POST", "/api/v1/keys"): (403, 403, 403),
    ("DELETE", "/api/v1/keys/{int:key_id}"): (403, 403, 403),
    ("POST", "/api/v1/keys/{int:key_id}/rotate"): (403, 403, 403),
    ("GET", "/api/v1/redaction-job"): (403, 403, 403),
    ("POST", "/api/v1/redaction-job"): (403, 403, 403),
    ("DELETE", "/api/v1/redaction-job"): (403, 403, 403),
    ("POST", "/api/v1/redaction-job/start"): (403, 403, 403),
    ("GET", "/api/v1/models"): (403, 200, 200),
    ("POST", "/api/v1/models"): (403, 403, 403),
    ("PATCH", "/api/v1/models/{int:model_id}"): (403, 403, 403),
    ("DELETE", "/api/v1/models/{int:model_id}"): (403, 403, 403),
    ("POST", "/api/v1/runs"): (200, 200, 201),
    ("GET", "/api/v1/runs"): (403, 200, 200),
    ("GET", "/api/v1/replays"): (403, 200, 200),
    ("GET", "/api/v1/sessions"): (403, 200, 200),
    ("GET", "/api/v1/sessions/{path:session_id}"): (403, 200, 404),
    ("POST", "/api/v1/sessions/{path:session_id}/replays"): (403, 202, 404),
    ("POST", "/api/v1/sessions/{path:session_id}/tags"): (403, 200, 404),
    ("GET", SESSION_REPLAY): (403, 200, 404),
    ("POST", f"{SESSION_REPLAY}/cancel"): (403, 202, 404),
    ("GET", f"{SESSION_REPLAY}/report"): (403, 200, 404),
    ("GET", RUN): (403, 200, 404),
    ("DELETE", RUN): (403, 204, 404),
    ("GET", f"{RUN}/replays"): (403, 200, 404),
    ("GET", f"{RUN}/steps"): (403, 200, 404),
    ("GET", f"{RUN}/record"): (403, 200, 404),
    ("GET", f"{RUN}/kit"): (403, 200, 404),
    ("GET", f"{RUN}/report"): (403, 200, 404),
    ("GET", f"{RUN}/otlp"): (403, 200, 404),
    ("GET", f"{RUN}/case-file"): (403, 200, 404),
    ("POST", f"{RUN}/replays"): (403, 202, 404),
    ("POST", f"{RUN}/exchanges"): (403, 400, 404),  # no recorded HTTP is sent: tests/api/test_printed.py sends some
    ("POST", f"{RUN}/replays/observed"): (403, 201, 404),
    ("GET", f"{RUN}/forks"): (403, 200, 404),
    ("GET", f"{RUN}/state"): (403, 200, 404),
    ("GET", f"{RUN}/checkpoints/{{step}}"): (403, 200, 404),
    ("POST", f"{RUN}/forks"): (403, 400, 404),  # what is asked for is not there: tests/api/test_forks.py asks well
    ("POST", f"{RUN}/resume"): (403, 400, 404),
    ("POST", f"{RUN}/samples"): (403, 400, 404),
    ("POST", f"{RUN}/cold-case"): (403, 200, 404),
    ("DELETE", f"{RUN}/cold-case"): (403, 204, 404),
    ("GET", f"{RUN}/notes"): (403, 200, 404),
    ("POST", f"{RUN}/notes"): (403, 201, 404),
    ("DELETE", f"{RUN}/notes/{{int:note_id}}"): (403, 404, 404),  # none is there: tests/api/test_notes.py deletes one
    ("GET", "/api/v1/payloads/{digest}"): (403, 200, 404),
    ("GET", "/api/v1/replays/{replay_id}"): (403, 200, 404),
    ("GET", "/api/v1/replays/{replay_id}/report"): (403, 200, 404),
    ("POST", "/api/v1/replays/{replay_id}/cancel"): (403, 202, 404),
    ("POST", "/api/v1/replays/{replay_id}/answers"): (403, 400, 404),
    ("POST", "/api/v1/replays/{replay_id}/continue"): (403, 400, 404),
    ("POST", "/api/v1/replays/{replay_id}/step"): (403, 400, 404),
    ("GET", "/api/v1/goldens"): (403, 200, 200),
    ("POST", "/api/v1/goldens"): (403, 201, 404),
    ("GET", GOLDEN): (403, 200, 404),
    ("DELETE", GOLDEN): (403, 204, 404),
    ("GET", f"{GOLDEN}/export"): (403, 200, 404),
    ("POST", f"{GOLDEN}/runs"): (403, 202, 404),
    ("POST", f"{GOLDEN}/runs/observed"): (403, 201, 404),
    ("POST", f"{GOLDEN}/runs/not-run"): (403, 201, 404),
    ("POST", f"{GOLDEN}/quarantine"): (403, 200, 404),
    ("DELETE", f"{GOLDEN}/quarantine"): (403, 204, 404),
    ("GET", "/api/v1/golden-runs/{golden_run_id}"): (403, 200, 404),
    ("POST", "/api/v1/golden-batches"): (403, 202, 400),
    ("GET", "/api/v1/exports/goldens"): (403, 200, 409),
    ("GET", "/api/v1/failure-groups"): (403, 200, 200),
    ("POST", "/api/v1/failure-groups/replays"): (403, 400, 400),  # none is there: tests/api/test_failure_groups.py has
    ("GET", "/api/v1/datasets/goldens"): (403, 200, 200),
    ("GET", "/api/v1/datasets/runs"): (403, 200, 200),
    ("GET", BATCH): (403, 200, 404),
    ("GET", f"{BATCH}/report"): (403, 200, 404),
    ("POST", f"{BATCH}/cancel"): (403, 202, 404),
    ("POST", f"{BATCH}/resume"): (403, 202, 404),
    ("GET", "/api/v1/comparisons"): (403, 200, 404),
    ("GET", "/api/v1/cold-cases"): (403, 200, 200),
}
OPEN = {"/api/v1/docs", "/api/v1/docs/<slug:group>", "/api/v1/openapi.json"}
"""The description of the API holds no data of anybody."""
BODIES = {
    "/api/v1/runs": make_record("r", make_tool_step(result="one")),
    "cold-case": {"reason": "x"},
    "notes": {"text": "x"},
    "tags": {"add": ["x"]},
    "quarantine": {"reason": "x"},
    "/api/v1/failure-groups/replays": {"agents": ["new"]},
    "not-run": {"agent": "shop:agent", "reason": "x"},
    "/api/v1/goldens": {"name": "n", "run_id": "r", "checks": [{"kind": "no_write"}]},
    "replays": {},
    "observed": {"mode": "code", "agent": "shop:agent", "record": make_record("seen", make_tool_step(result="one"))},
}


@pytest.fixture
def shop():
    return make_project()


@pytest.fixture
def full(shop):
    client = make_client(make_key(shop))
    post_run(client, BODIES["/api/v1/runs"])
    return client


@pytest.fixture
def replay(full):
    run = Run.objects.get()
    asked = SessionReplay.objects.create(project=run.project, session=run.session)
    replay = Replay.objects.create(
        project=run.project, run=run, content=run.content, number=1, state="done", session_replay=asked
    )
    golden = Golden.objects.create(project=run.project, run=run, name="kept", checks=[{"kind": "no_write"}])
    batch = GoldenBatch.objects.create(project=run.project)
    GoldenRun.objects.create(golden=golden, batch=batch, replay=replay)
    return replay


CONVERTED = {
    f"{{{name}}}": f"{{{kind}:{name}}}"
    for kind, names in {
        "path": ("run_id", "session_id"),
        "int": ("invitation_id", "key_id", "model_id", "note_id"),
        "slug": ("project",),
    }.items()
    for name in names
}
"""How the description names a part of an address, and how the address does."""


def described_routes(client):
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    return {
        (method.upper(), re.sub("|".join(CONVERTED), lambda found: CONVERTED[found[0]], path))
        for path, methods in paths.items()
        for method in methods
    }


def test_no_route_is_missing_in_the_table(client):
    assert described_routes(client) == set(TABLE)


def test_no_address_is_served_that_the_description_hides():
    served = {route for route in api_addresses(get_resolver()) if not route.startswith("^")}
    described = {path.lstrip("/").replace("{", "<").replace("}", ">") for _, path in TABLE} | {
        p.lstrip("/") for p in OPEN
    }

    assert served == described | {"api/v1/"}


def api_addresses(resolver, prefix=""):
    for entry in resolver.url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from api_addresses(entry, route)
        elif isinstance(entry, URLPattern) and route.lstrip("^").startswith("api/"):
            yield route


def ask(client, method, route, replay):
    address = route.replace("{path:run_id}", "r").replace("{path:session_id}", "r")
    address = address.replace("{replay_id}", replay.replay_id).replace("{digest}", stored_digest())
    address = address.replace("{step}", "1").replace("{username}", "ann").replace("{slug:project}", "shop")
    address = re.sub(r"\{int:\w+\}", "1", address)
    asked = replay.session_replay.session_replay_id if replay.session_replay else "sr_nothing"
    address = address.replace("{session_replay_id}", asked)
    address = address.replace("{golden_id}", newest(Golden, "golden_id")).replace(
        "{golden_run_id}", newest(GoldenRun, "golden_run_id")
    )
    address = address.replace("{golden_batch_id}", newest(GoldenBatch, "golden_batch_id"))
    query = "?left=r&right=r" if route.endswith("comparisons") else ""
    body = BODIES.get(route) or BODIES.get(route.rpartition("/")[2], {})
    data = {} if method == "GET" else {"data": body, "content_type": "application/json"}
    return getattr(client, method.lower())(address + query, **data)


def newest(model, name):
    return model.objects.order_by("-pk").values_list(name, flat=True).first() or "nothing"


def stored_digest():
    return Run.objects.get(project__slug="shop").document


@pytest.mark.parametrize(("method", "route"), TABLE, ids=str)
def test_route(shop, full, replay, method, route):
    ingest, own, foreign = TABLE[method, route]
    revoked = make_key(shop)
    revoke_key(ApiKey.objects.latest("pk"))
    other = project_client("other")
    before = row_counts()

    for nobody in (make_client(None), make_client("rpk_wrong"), make_client(revoked), make_client("")):
        answer = ask(nobody, method, route, replay)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
        assert answer["WWW-Authenticate"] == "Bearer"
    assert ask(make_client(make_key(shop, KeyScope.INGEST)), method, route, replay).status_code == ingest
    if foreign == 404:
        assert ask(other, method, route, replay).status_code == 404
        assert {**row_counts(), "ApiKey": 0} == {**before, "ApiKey": 0}
    assert ask(full, method, route, replay).status_code == own
    if foreign != 404:
        assert ask(other, method, route, replay).status_code == foreign


@pytest.mark.parametrize(("method", "route"), [key for key, row in TABLE.items() if row[2] == 404], ids=str)
def test_what_another_project_has_and_what_nobody_has_is_refused_in_the_same_words(full, replay, method, route):
    other = project_client("other")
    theirs = ask(other, method, route, replay)
    Replay.objects.all().delete()
    answer = ask(other, method, route, Replay(replay_id="rp_nothing"))

    assert theirs.status_code == 404
    assert theirs.json() == answer.json()
    assert theirs.json()["error"]["code"] == "not_found"


def test_a_comparison_needs_both_runs_in_the_project(full):
    other = project_client("other")
    post_run(other, make_record("mine"))

    for left, right in (("mine", "r"), ("r", "mine"), ("r", "r")):
        assert other.get(f"/api/v1/comparisons?left={left}&right={right}").status_code == 404
    assert other.get("/api/v1/comparisons?left=mine&right=mine").status_code == 200


def test_the_same_run_id_in_two_projects_is_two_runs(full):
    other = project_client("other")
    post_run(other, make_record("r", input="theirs"))

    assert (full.get("/api/v1/runs/r").json()["input"], other.get("/api/v1/runs/r").json()["input"]) == (None, "theirs")


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options"])
def test_other_methods_are_refused(full, method):
    answer = getattr(full, method)("/api/v1/sessions")

    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")
    assert answer.json()["error"]["code"] == "method_not_allowed"
    assert full.get("/api/v1/sessions").status_code == 200


@pytest.mark.parametrize("address", ["/api/v1/nothing", "/api/v1/", "/api/v1/runs/", "/api/v1/replays/a/b"])
def test_an_unknown_address_is_said_in_our_words(full, address):
    answer = full.get(address)

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


def test_cookies_mean_nothing_here(client, django_user_model, full):
    client.force_login(django_user_model.objects.create_superuser("root"))

    assert client.get("/api/v1/sessions").status_code == 401


WRONG = {
    "limit": ("/api/v1/sessions?limit=x", "limit"),
    "limit 0": ("/api/v1/sessions?limit=0", "limit"),
    "cursor": ("/api/v1/sessions?cursor=x", "cursor"),
    "step cursor": ("/api/v1/runs/r/steps?cursor=-1", "cursor"),
    "NUL": ("/api/v1/sessions?q=%00", "q"),
    "long": ("/api/v1/sessions?q=" + "a" * 5000, "q"),
    "number": ("/api/v1/sessions?q=steps:many", "q"),
    "format": ("/api/v1/runs/r/report?format=pdf", "format"),
    "misspelled": ("/api/v1/runs?limits=2", "limits"),
    "unknown to this address": ("/api/v1/runs/r?limit=2", "limit"),
    "unknown beside known": ("/api/v1/comparisons?left=r&right=r&deep=1", "deep"),
    "no sides": ("/api/v1/comparisons", "left"),
}


@pytest.mark.parametrize(("address", "field"), WRONG.values(), ids=WRONG)
def test_a_wrong_parameter_is_named(full, address, field):
    answer = full.get(address)

    assert answer.status_code == 400, answer.content
    assert answer.json()["error"]["field"] == field


BAD_REASONS = [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"reason": 5}', b'{"reason": " "}',
               b'{"reason": "\\u0000"}', b'{"reason": "\\ud800"}', b'{"reason": "' + b"x" * 3000 + b'"}']  # fmt: skip


@pytest.mark.parametrize("body", BAD_REASONS, ids=lambda body: repr(body[:24]))
def test_a_cold_case_needs_a_reason(full, body):
    before = row_counts()

    answer = full.post("/api/v1/runs/r/cold-case", body, content_type="application/json")

    assert answer.status_code == 400, answer.content
    assert list(answer.json()["error"]) == ["code", "message", "field"]
    assert row_counts() == before


def test_a_large_body_is_refused_everywhere(full):
    body = b'{"reason": "' + b"x" * 5_000_000 + b'"}'

    assert full.post("/api/v1/runs/r/cold-case", body, content_type="application/json").status_code == 413


@pytest.mark.parametrize(
    "body",
    [{"mode": "live"}, {"mode": "code"}, {"tools": {"a": "live"}}, {"request_key": "\0"}, {"request_key": "x" * 121}],
)
def test_a_replay_of_another_kind_is_refused(full, body):
    answer = full.post("/api/v1/runs/r/replays", body, content_type="application/json")

    assert answer.status_code == 400, answer.content
    assert not Replay.objects.exists()


def test_a_cold_case_is_marked_listed_and_taken_back(full):
    address = "/api/v1/runs/r/cold-case"
    marked = full.post(address, {"reason": " lost "}, content_type="application/json")

    assert marked.json()["reason"] == "lost"
    assert full.get("/api/v1/runs/r").json()["cold_case"] == marked.json()
    assert full.get("/api/v1/cold-cases").json()["total"] == 1
    assert full.post(address, {"reason": "again"}, content_type="application/json").json()["reason"] == "again"
    assert [full.delete(address).status_code, full.delete(address).status_code] == [204, 204]
    assert full.get("/api/v1/runs/r").json()["cold_case"] is None
