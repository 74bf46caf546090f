"""Who most pages are tried with: a project, and a member of it who is signed in."""

import pytest

from tests.web.making import client_of, make_project, make_user


@pytest.fixture
def shop():
    return make_project()


@pytest.fixture
def bob(shop):
    return client_of(make_user("bob", shop))
