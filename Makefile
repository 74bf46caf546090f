# Short names; manage.py does the work.
.PHONY: up test lint check format lock dev docs audit

VENV := .venv/bin

up:
	python3 manage.py up

test:
	python3 manage.py test

# An environment with everything, made from requirements-dev.lock when it is not there.
dev:
	@python3 manage.py test --version > /dev/null

lint: dev
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy
	$(VENV)/lint-imports
	$(VENV)/djlint templates --check --lint --quiet

check: lint test

format: dev
	$(VENV)/ruff check --fix .
	$(VENV)/ruff format .
	$(VENV)/djlint templates --reformat --quiet

# The documentation site, in build/site. Broken links and pages that no menu names are errors.
docs: build/docs/bin/mkdocs
	build/docs/bin/mkdocs build --strict

build/docs/bin/mkdocs: requirements-docs.lock
	python3 -m venv build/docs
	build/docs/bin/python -m pip install --quiet --require-hashes -r requirements-docs.lock
	@touch $@

# Known vulnerabilities of what the lock files name. Needs a network where the advisory data can be had.
audit: build/audit/bin/pip-audit
	@python3 .ci/audit $< requirements.lock requirements-dev.lock requirements-docs.lock

build/audit/bin/pip-audit:
	python3 -m venv build/audit
	build/audit/bin/python -m pip install --quiet pip-audit==2.10.1

# After a change of requirements.in or requirements-dev.in. `make lock UPGRADE=--upgrade` takes newer versions.
COMPILE := $(VENV)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links $(UPGRADE)
lock:
	$(VENV)/python -m pip install --quiet uv
	$(COMPILE) requirements.in requirements-runner.in -o requirements.lock
	$(COMPILE) requirements-dev.in -c requirements.lock -o requirements-dev.lock
	$(COMPILE) requirements-docs.in -o requirements-docs.lock
	$(COMPILE) tests/recorder/floor.in -o tests/recorder/floor.lock
