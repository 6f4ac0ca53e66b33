# One stage installs, the other runs. debian-slim, because the Postgres binaries require glibc.
# In production the image needs DATABASE_URL, MASTER_KEY and UPSTREAM_*; the sandbox and the embedded Postgres in
# /data run only with -e NODE_ENV=development. Commands: docker exec … tallyhook doctor
FROM debian:12-slim AS install
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates nodejs npm \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev
COPY src ./src
COPY drizzle ./drizzle
COPY config ./config

FROM debian:12-slim
# tini reaps processes and passes signals on.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates tini \
  && rm -rf /var/lib/apt/lists/* \
  && useradd --system --uid 10001 --create-home --home-dir /home/tallyhook tallyhook \
  && mkdir /data && chown tallyhook /data \
  && printf '#!/bin/sh\nexec node /app/src/cli/tallyhook.ts "$@"\n' >/usr/local/bin/tallyhook \
  && chmod 755 /usr/local/bin/tallyhook
WORKDIR /app
COPY --from=install /app ./
ENV NODE_ENV=production NODE_OPTIONS="--max-semi-space-size=4 --max-old-space-size=1024" \
  PATH=/app/node_modules/.bin:$PATH DATA_DIR=/data HOST=0.0.0.0 PORT=8080
USER tallyhook
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:'+(process.env.PORT||8080)+'/readyz').then((r)=>process.exit(r.ok?0:1),()=>process.exit(1))"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["tini", "--"]
CMD ["node", "src/main.ts"]
