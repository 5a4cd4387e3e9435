/*
 * The HTTP server: plugins, and the routes in each folder's `http.ts`. It never waits for a client
 * that does not read its response.
 */

import type { FastifyInstance } from 'fastify';
import Fastify from 'fastify';
import { addAuth } from '../access/auth.ts';
import { addCors } from '../access/cors.ts';
import { environmentRoutes, keyRoutes } from '../access/http.ts';
import { sessionRoutes } from '../access/session-http.ts';
import { MAX_BATCH_BYTES, MAX_DELETION_BYTES, MAX_HELD_BATCH_BYTES, MiB } from '../base/limits.ts';
import type { System } from '../context.ts';
import { deletionRoutes } from '../deletion/http.ts';
import { OptionTable } from '../domain/option-table.ts';
import { exportRoutes } from '../export/http.ts';
import { ExportOptions } from '../export/options.ts';
import { addApiDocs, addApiDocument, DocumentText, tags } from '../http/api-document.ts';
import {
  addErrorHandler,
  addNotFound,
  answerClientError,
  explainError,
  sendErrors,
} from '../http/plugins/errors.ts';
import {
  addRequestMetrics,
  addStandardHeaders,
  chooseRequestId,
  setStandardHeaders,
} from '../http/plugins/every-request.ts';
import { addJsonBody } from '../http/plugins/json-body.ts';
import { addLoadShedding, addRateLimit, type ServerState } from '../http/plugins/limits.ts';
import { addExpectContinue, addForms, addLingeringClose, addRawBody } from '../http/plugins/request-body.ts';
import { addSlowReaderLimits } from '../http/plugins/slow-readers.ts';
import { addValidation } from '../http/plugins/validation.ts';
import type { BodyKind, Route, TaggedRoutes } from '../http/route.ts';
import { components, flag, withFields } from '../http/schema.ts';
import { recordRoutes } from '../ingest/http.ts';
import { jobRoutes } from '../jobs/http.ts';
import { overviewRoutes } from '../jobs/overview-http.ts';
import { importRoutes } from '../load/http.ts';
import { planRoutes } from '../load/plans/http.ts';
import { rejectRoutes } from '../load/rejects/http.ts';
import { lookupRoutes } from '../lookups/http.ts';
import { profileRoutes } from '../profiles/http.ts';
import { segmentRoutes } from '../profiles/segments-http.ts';
import { capabilities } from '../registry.ts';
import { documentationRoutes, serviceRoutes, showConsole } from './service-http.ts';

export const MAX_HELD_BATCH_BYTES_PER_ENVIRONMENT = 24 * MiB;

const deletionOptions = capabilities.flatMap(({ deletions }) => deletions?.option ?? []);

const calls = (await capabilities.find((each) => each.calls)?.calls?.()) ?? null;

const optionTable = new OptionTable(capabilities.flatMap(({ loads }) => loads ?? []));

const exportOptions = new ExportOptions(capabilities.flatMap(({ exports }) => exports ?? []));

const routes: TaggedRoutes = {
  ingestion: recordRoutes(calls),
  loads: importRoutes(optionTable),
  deletions: deletionRoutes(deletionOptions),
  exports: exportRoutes(exportOptions),
  jobs: [...jobRoutes, ...planRoutes, ...rejectRoutes, ...overviewRoutes],
  reading: [...profileRoutes, ...segmentRoutes],
  lookups: lookupRoutes,
  keys: [...keyRoutes, ...sessionRoutes],
  operations: [...serviceRoutes, ...environmentRoutes],
  documentation: documentationRoutes,
};

const optionFields = Object.fromEntries(deletionOptions.map(({ name, record }) => [name, flag(record)]));

const loadFields = Object.fromEntries(
  capabilities.flatMap(({ loads }) => (loads?.fields ?? []).map(({ name, schema }) => [name, schema])),
);

const capabilityRoutes = await Promise.all(
  capabilities.map(({ routes }) => routes?.(optionTable, exportOptions)),
);

const headsCheckMs = 5_000;
/** Load balancers have shorter idle timeouts, so they close idle connections first. */
const keepAliveTimeoutMs = 75_000;
/** Maximum length of a path parameter, longer than any id. */
const maxParamLength = 4_096;

/** Creates a server, which does not accept connections until `startHttpServer` makes it listen. */
export function createApp(system: System, state: ServerState = { closing: false }): FastifyInstance {
  const app = Fastify({
    logger: false,
    genReqId: chooseRequestId,
    trustProxy: system.config.trustProxy,
    // A body may take any time, as long as bytes arrive.
    requestTimeout: 0,
    http: { connectionsCheckingInterval: Math.min(headsCheckMs, system.config.uploadStallMs) },
    keepAliveTimeout: keepAliveTimeoutMs,
    return503OnClosing: false,
    // Clients often join a base URL with a final slash and a path with a leading one.
    routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, maxParamLength },
    clientErrorHandler: (error, socket) =>
      answerClientError(error, socket, (each) => state.endWithAnswers?.(each) === true),
    frameworkErrors: (error, request, reply) => {
      setStandardHeaders(request, reply);
      sendErrors(reply, explainError(error));
    },
  });
  app.server.headersTimeout = system.config.uploadStallMs;
  addExpectContinue(app);
  addErrorHandler(app, system);
  addStandardHeaders(app);
  addRequestMetrics(app, system);
  addLoadShedding(app, system, undefined, state);
  addSlowReaderLimits(app);
  addCors(app, system);
  addAuth(app, system);
  addRateLimit(app, system);
  addLingeringClose(app);
  app.addHook('preClose', async () => {
    state.closing = true;
  });
  addNotFound(app);
  addRawBody(app);
  addValidation(app);
  addApiDocument(
    app,
    withFields(components, { JobDetail: loadFields, DeletionJobDetail: optionFields }),
    system,
  );
  // Fastify loads a scope after the plugins that were registered before it.
  app.register(async (scope) => addRoutes(scope, system, state));
  return app;
}

const heldBatches = { bytes: MAX_HELD_BATCH_BYTES, perEnvironment: MAX_HELD_BATCH_BYTES_PER_ENVIRONMENT };

const parsers: Readonly<Record<BodyKind, (scope: FastifyInstance, timeoutMs: number) => void>> = {
  raw: () => {},
  form: addForms,
  json: (scope, timeoutMs) => addJsonBody(scope, { timeoutMs }),
  deletion: (scope, timeoutMs) => addJsonBody(scope, { timeoutMs, maxBytes: MAX_DELETION_BYTES }),
  batch: (scope, timeoutMs) =>
    addJsonBody(scope, { timeoutMs, maxBytes: MAX_BATCH_BYTES, ndjson: true, held: heldBatches }),
  sdk: (scope, timeoutMs) =>
    addJsonBody(scope, {
      timeoutMs,
      maxBytes: MAX_BATCH_BYTES,
      ndjson: true,
      held: heldBatches,
      forms: true,
    }),
};

/**
 * Returns the routes in the order of the chapters of the API document. In a chapter, the core's
 * routes are first.
 */
function allRoutes(): { readonly tag: string; readonly route: Route }[] {
  const all = [routes, ...capabilityRoutes];
  return tags.flatMap(({ name: tag }) =>
    all.flatMap((tagged) => tagged?.[tag] ?? []).map((route) => ({ tag, route })),
  );
}

function addRoutes(app: FastifyInstance, system: System, state: ServerState): void {
  const document = new DocumentText(app);
  addApiDocs(app, document);
  showConsole(app, system);
  for (const [kind, addParser] of Object.entries(parsers)) {
    app.register(async (scope) => {
      addParser(scope, system.config.uploadStallMs);
      for (const each of allRoutes()) {
        if (each.route.bodyKind === kind) each.route.add(scope, system, { state, document }, each.tag);
      }
    });
  }
}
