# One image for every role: migrate, serve, work. `docs/operations.md` says how it is run.
# Without engines at hand it is held to account by test/integration/packaging.test.ts.

# The compiler is a platform package, so this stage installs what is optional too.
FROM node:24.21.0-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY LICENSE tsconfig.json tsconfig.build.json ./
COPY src src
COPY jobs jobs
COPY examples/demo examples/demo
COPY tools tools
COPY sql sql
COPY docs/samples docs/samples
COPY docs/schemas docs/schemas
# The package that npm has, in the folder `package`.
RUN npm pack && tar -xzf sluice-*.tgz

# What runs, and nothing else: all packages are in the bundle but the embedded PostgreSQL, which is not needed here.
FROM node:24.21.0-slim
LABEL org.opencontainers.image.title="sluice" \
  org.opencontainers.image.description="Self-hosted loader and exporter for product-analytics data, on PostgreSQL" \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.source="https://github.com/sluice-loader/sluice"
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 DATA_DIR=/data
WORKDIR /app
COPY --from=build /build/package ./
# All this belongs to root and is only read. A volume that is mounted at one of these is made with its owner.
RUN mkdir /data /inbox /schedules && chown 1000:1000 /data /inbox /schedules
USER 1000:1000
EXPOSE 8080
STOPSIGNAL SIGTERM
# Of `serve`, the default. A worker listens nowhere: docker-compose.yml has another check for it.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/health/live').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "dist/bundle/main.js"]
CMD ["serve"]
