import { AsyncLocalStorage } from 'node:async_hooks';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { SpanIdentity } from '../domain/trace.ts';

/*
 * Traces, if the standard variables of OpenTelemetry ask for them; without them the SDK is not loaded, and
 * `System.tracing` is null. A trace goes from a request to the chunks of its job, in whichever process, and to their statements:
 * `job_traces` keeps the context of a job. docs/tracing.md is for operators.
 */

export interface Span extends SpanIdentity {
  readonly isEnded: boolean;
  set(attributes: Attributes): void;
  /** Records the kind of an error, and nothing else: messages may hold data. */
  fail(error: unknown): void;
  end(): void;
}

type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOptions {
  readonly kind: 'server' | 'consumer' | 'client' | 'internal';
  /** By default the active span; `null` begins a trace. */
  readonly parent?: SpanIdentity | null;
  readonly links?: readonly SpanIdentity[];
  readonly attributes?: Attributes;
}

export interface Tracing {
  /** The span of the running code, or `null` if there is none or it has ended. */
  readonly active: Span | null;
  begin(name: string, options: SpanOptions): Span;
  within<T>(span: Span, work: () => T): T;
  /** Runs `work` in a span of its own, which ends with it. */
  span<T>(name: string, options: SpanOptions, work: () => Promise<T>): Promise<T>;
  /** Makes spans of the statements of a pool that are part of a span. */
  watchPool(pool: pg.Pool): void;
  /** Sends what is left, within TRACE_FLUSH_MS. */
  close(): Promise<void>;
}

export type ActiveSpans = AsyncLocalStorage<Span>;

export function traceFields(spans: ActiveSpans): object {
  const span = spans.getStore();
  return span === undefined ? {} : { trace_id: span.traceId, span_id: span.spanId };
}

type Environment = Readonly<Record<string, string | undefined>>;

export function wantsTraces(environment: Environment): boolean {
  const value = reader(environment);
  if (value('OTEL_SDK_DISABLED').toLowerCase() === 'true') return false;
  const exporters = list(value('OTEL_TRACES_EXPORTER'));
  if (exporters.length > 0) return exporters.includes('otlp');
  return value('OTEL_EXPORTER_OTLP_ENDPOINT') !== '' || value('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') !== '';
}

/** Returns a sentence for each variable with an unsupported value. */
export function unsupportedTraceSettings(environment: Environment): readonly string[] {
  const value = reader(environment);
  if (value('OTEL_SDK_DISABLED').toLowerCase() === 'true') return [];
  const sentences: string[] = [];
  const exporters = list(value('OTEL_TRACES_EXPORTER'));
  if (exporters.some((name) => name !== 'otlp' && name !== 'none'))
    sentences.push(`OTEL_TRACES_EXPORTER=${exporters.join()}: only otlp and none are supported`);
  if (!wantsTraces(environment)) return sentences;
  const ofTraces = 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL';
  const variable = value(ofTraces) === '' ? 'OTEL_EXPORTER_OTLP_PROTOCOL' : ofTraces;
  if (!['', 'http/json'].includes(value(variable)))
    sentences.push(
      `${variable}=${value(variable)} is not supported: spans are sent as http/json (port 4318)`,
    );
  const propagators = list(value('OTEL_PROPAGATORS'));
  if (propagators.length > 0 && !propagators.includes('tracecontext'))
    sentences.push(`OTEL_PROPAGATORS=${propagators.join()} is not supported: tracecontext is used`);
  return sentences;
}

export function warnOfTraces(environment: Environment, log: Logger): void {
  for (const sentence of unsupportedTraceSettings(environment)) log.warn(sentence);
}

function reader(environment: Environment): (name: string) => string {
  return (name) => environment[name]?.trim() ?? '';
}

const list = (value: string): readonly string[] =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean);

export function openActiveSpans(environment: Environment): ActiveSpans | null {
  return wantsTraces(environment) ? new AsyncLocalStorage() : null;
}
