/** The traces by way of the SDK of OpenTelemetry, which reads its own variables. Loaded only where traces are asked for. */
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
import type { Logger } from 'pino';
import { TRACE_FLUSH_MS } from '../domain/limits.ts';
import type { SpanIdentity } from '../domain/trace.ts';
import { guardAgent } from '../net/guarded-agent.ts';
import { readPackage } from '../package-root.ts';
import { withDeadline } from '../with-deadline.ts';
import { traceStatements } from './traced-statements.ts';
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

/** The exporter as its variables say (certificates too), on a guarded agent. */
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

/** The code of the database or of the system, else the class. */
function sortOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : '_OTHER';
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' ? code : error.name;
}

/** Says once that spans cannot be sent, and once that they can be again. */
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

/** A collector that does not answer holds up no stop. */
async function flush(provider: BasicTracerProvider, log: Logger): Promise<void> {
  try {
    await withDeadline(provider.shutdown(), TRACE_FLUSH_MS, () =>
      log.warn('the last spans could not be sent in time'),
    );
  } catch (error) {
    log.warn({ err: error }, 'the last spans could not be sent');
  }
}
