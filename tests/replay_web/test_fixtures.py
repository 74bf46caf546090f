"""The fixtures that other tests stand on."""

from replay_web.celery import app


def test_a_browser_opens_the_sign_in_page(running_instance, page):
    answer = page.goto(f"{running_instance.url}/sign-in")

    assert answer.status == 200
    assert page.locator("input[name=username]").count() == 1


def test_a_running_instance_tells_how_to_sign_in(running_instance):
    assert set(running_instance.connection) >= {"url", "username", "password", "api_key"}
    assert running_instance.connection["url"] == running_instance.url


def test_a_worker_process_answers(celery_worker_process):
    assert app.control.inspect(timeout=5, limit=1).ping()
    assert celery_worker_process.poll() is None
