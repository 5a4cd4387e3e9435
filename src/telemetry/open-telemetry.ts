/** Traces with the SDK of OpenTelemetry, which reads its own variables. Loaded only if traces are asked for. */
import {
  type Context,
  ROOT_CONTEXT,
  type Span as SdkSpan,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { convertLegacyHttpOptions } from '@opentelemetry/otlp-exporter-base/node-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from '@opentelemetry/sdk-trace-base';
import type pg from 'pg';
import type { Logger } from 'pino';
import { TRACE_FLUSH_MS } from '../domain/limits.ts';
import type { SpanIdentity } from '../domain/trace.ts';
import { guardAgent } from '../net/http-client.ts';
import { readPackage } from '../package-root.ts';
import { onConnection } from '../postgres/database.ts';
import { withDeadline } from '../timers.ts';
import type { ActiveSpans, Span, SpanOptions, Tracing } from './tracing.ts';

const kinds = {
  server: SpanKind.SERVER,
  consumer: SpanKind.CONSUMER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
} as const satisfies Record<SpanOptions['kind'], SpanKind>;

export function startTracing(spans: ActiveSpans, role: string, log: Logger): Tracing {
  const { version } = readPackage();
  const own = resourceFromAttributes({
    'service.name': 'sluice',
    'service.version': version,
    'service.instance.id': `${role} ${process.pid}`,
  });
  const provider = new BasicTracerProvider({
    // The variables win: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES.
    resource: defaultResource()
      .merge(own)
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(reporting(openExporter(), log))],
  });
  const tracer = provider.getTracer('sluice', version);
  return openTraces(spans, tracer, () => flush(provider, log));
}

/** Opens the exporter that the variables describe (certificates too), on a guarded agent. */
function openExporter(): OTLPTraceExporter {
  const { agentFactory } = convertLegacyHttpOptions({}, 'TRACES', 'v1/traces', {});
  return new OTLPTraceExporter({
    httpAgentOptions: async (protocol) => guardAgent(await agentFactory(protocol)),
  });
}

function openTraces(spans: ActiveSpans, tracer: Tracer, close: () => Promise<void>): Tracing {
  const active = (): Span | null => {
    const span = spans.getStore();
    return span === undefined || span.isEnded ? null : span;
  };
  const begin = (
    name: string,
    { kind, parent = active(), links = [], attributes = {} }: SpanOptions,
  ): Span => {
    const options = {
      kind: kinds[kind],
      attributes,
      links: links.map((link) => ({ context: contextOf(link) })),
    };
    return new TracedSpan(tracer.startSpan(name, options, parentContext(parent)));
  };
  const tracing: Tracing = {
    get active() {
      return active();
    },
    begin,
    within: (span, work) => spans.run(span, work),
    async span(name, options, work) {
      const span = begin(name, options);
      try {
        return await spans.run(span, work);
      } catch (error) {
        span.fail(error);
        throw error;
      } finally {
        span.end();
      }
    },
    watchPool: (pool) => traceStatements(pool, tracing),
    close,
  };
  return tracing;
}

function contextOf({ traceId, spanId, isSampled }: SpanIdentity) {
  return { traceId, spanId, traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE, isRemote: true };
}

function parentContext(parent: SpanIdentity | null): Context {
  if (parent === null) return ROOT_CONTEXT;
  if (parent instanceof TracedSpan) return trace.setSpan(ROOT_CONTEXT, parent.sdk);
  return trace.setSpanContext(ROOT_CONTEXT, contextOf(parent));
}

class TracedSpan implements Span {
  readonly sdk: SdkSpan;
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
  isEnded = false;

  constructor(sdk: SdkSpan) {
    const { traceId, spanId, traceFlags } = sdk.spanContext();
    this.sdk = sdk;
    this.traceId = traceId;
    this.spanId = spanId;
    this.isSampled = (traceFlags & TraceFlags.SAMPLED) !== 0;
  }

  set(attributes: Parameters<Span['set']>[0]): void {
    this.sdk.setAttributes(attributes);
  }

  fail(error: unknown): void {
    this.sdk.setAttributes({ 'error.type': sortOf(error) });
    this.sdk.setStatus({ code: SpanStatusCode.ERROR });
  }

  end(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.sdk.end();
  }
}

/** Returns the code of the database or the system, or else the class. */
function sortOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : '_OTHER';
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' ? code : error.name;
}

/** Logs once that spans cannot be sent, and once that they can be sent again. */
function reporting(exporter: SpanExporter, log: Logger): SpanExporter {
  let isAway = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        // SUCCESS is 0.
        const failed = result.code !== 0;
        if (failed && !isAway)
          log.warn({ err: result.error }, 'spans cannot be sent; they are lost until they can');
        if (!failed && isAway) log.info('spans are sent again');
        isAway = failed;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  };
}

/** Sends the last spans; a collector that does not answer does not hold up the stop. */
async function flush(provider: BasicTracerProvider, log: Logger): Promise<void> {
  try {
    await withDeadline(provider.shutdown(), TRACE_FLUSH_MS, () =>
      log.warn('the last spans could not be sent in time'),
    );
  } catch (error) {
    log.warn({ err: error }, 'the last spans could not be sent');
  }
}

/**
 * Makes spans of the statements of a pool that are part of a span. Queries go through a connection taken here: those of an exhausted
 * pool begin in the context of the caller that gives one back.
 */
function traceStatements(pool: pg.Pool, tracing: Tracing): void {
  pool.on('connect', (client) => traceClient(client, tracing));
  const query = pool.query.bind(pool) as (...given: readonly unknown[]) => unknown;
  pool.query = ((...given: readonly unknown[]) => {
    if (typeof given.at(-1) === 'function' || tracing.active === null) return query(...given);
    return onConnection(pool, (client) =>
      (client.query as (...all: readonly unknown[]) => Promise<unknown>)(...given),
    );
  }) as typeof pool.query;
}

function traceClient(client: pg.ClientBase, tracing: Tracing): void {
  const query = client.query.bind(client) as (...given: readonly unknown[]) => unknown;
  client.query = ((...given: readonly unknown[]) => {
    if (tracing.active === null || typeof given.at(-1) === 'function') return query(...given);
    const name = summaryOf(given[0]);
    const span = tracing.begin(name, {
      kind: 'client',
      attributes: { 'db.system.name': 'postgresql', 'db.query.summary': name },
    });
    return endedWith(span, () => query(...given));
  }) as typeof client.query;
}

/** Ends the span with the result of `begin`: a promise, or the stream of a COPY. */
function endedWith(span: Span, begin: () => unknown): unknown {
  const onFailed = (error: unknown): void => {
    span.fail(error);
    span.end();
  };
  try {
    const result = begin();
    if (result instanceof Promise) {
      result.then(() => span.end(), onFailed);
    } else if (isStream(result)) {
      result.once('error', onFailed);
      for (const event of ['finish', 'end', 'close']) result.once(event, () => span.end());
    } else span.end();
    return result;
  } catch (error) {
    onFailed(error);
    throw error;
  }
}

function isStream(value: unknown): value is NodeJS.EventEmitter {
  return typeof value === 'object' && value !== null && 'once' in value && typeof value.once === 'function';
}

const unknownStatement = 'statement';
const mostRead = 4_000;

/**
 * Returns a statement's name, or what it does to which table. Never its text: COPY has no parameters, so the ids that an export asks
 * for stand in it.
 */
export function summaryOf(statement: unknown): string {
  if (typeof statement === 'string') return summaryOfText(statement);
  if (typeof statement !== 'object' || statement === null) return unknownStatement;
  const { name, text } = statement as { readonly name?: unknown; readonly text?: unknown };
  if (typeof name === 'string' && name !== '') return name;
  return typeof text === 'string' ? summaryOfText(text) : unknownStatement;
}

const verb = /^(?:\s|--[^\n]*\n)*(?:with\b[\s\S]*?\b(?=insert|update|delete|select))?\s*([a-z]+)/i;
const table = /\b(?:into|from|update|copy|join|table)\s+(?:only\s+)?((?:"?[a-z_]+"?\.)?"?[a-z_]+"?)/i;

const exportText = /^\s*copy\s*\(/i;

function summaryOfText(text: string): string {
  if (exportText.test(text)) return 'COPY export';
  const head = text.slice(0, mostRead);
  const found = verb.exec(head)?.[1]?.toUpperCase();
  if (found === undefined) return unknownStatement;
  const target = table.exec(head)?.[1]?.replaceAll('"', '');
  return target === undefined ? found : `${found} ${target}`;
}
