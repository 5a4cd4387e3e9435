# One image for every role: migrate, serve, work. `docs/operations.md` says how it is run.
# Without engines at hand it is held to account by test/integration/packaging.test.ts.

# The compiler is a platform package, so this stage installs what is optional too.
FROM node:24.21.0-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src src
COPY jobs jobs
COPY examples/demo examples/demo
COPY tools tools
RUN npx tsc -p tsconfig.build.json && npx tsx tools/bundle-console.ts

# What runs, and nothing else: optional are the embedded PostgreSQL and a native decoder, neither of which is needed here.
FROM node:24.21.0-slim AS packages
WORKDIR /packages
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts

FROM node:24.21.0-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 DATA_DIR=/data
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=packages /packages/node_modules node_modules
COPY sql sql
COPY docs/samples docs/samples
COPY docs/schemas docs/schemas
COPY --from=build /build/dist/src dist/src
COPY --from=build /build/dist/jobs dist/jobs
COPY --from=build /build/dist/console dist/console
COPY --from=build /build/dist/examples dist/examples
# All this belongs to root and is only read. A volume that is mounted at one of these is made with its owner.
RUN mkdir /data /inbox /schedules && chown 1000:1000 /data /inbox /schedules
USER 1000:1000
EXPOSE 8080
STOPSIGNAL SIGTERM
# Of `serve`, the default. A worker listens nowhere: docker-compose.yml has another check for it.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/health/live').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "dist/src/cli/main.js"]
CMD ["serve"]
