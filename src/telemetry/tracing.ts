/*
 * Traces, if the standard variables of OpenTelemetry ask for them; without them the SDK is not loaded, and
 * `System.tracing` is null. A trace goes from a request to the chunks of its job, in whichever process, and to their statements:
 * `job_traces` keeps the context of a job. docs/tracing.md is for operators.
 */
import type { AsyncLocalStorage } from 'node:async_hooks';
import type pg from 'pg';
import type { SpanIdentity } from '../domain/trace.ts';

export interface Span extends SpanIdentity {
  readonly isEnded: boolean;
  set(attributes: Attributes): void;
  /** Records the kind of an error, and nothing else: messages may hold data. */
  fail(error: unknown): void;
  /** Ends the span; later calls do nothing. */
  end(): void;
}

type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOptions {
  readonly kind: 'server' | 'consumer' | 'client' | 'internal';
  /** By default the active span; `null` begins a trace. */
  readonly parent?: SpanIdentity | null;
  /** Other spans whose work it does. */
  readonly links?: readonly SpanIdentity[];
  readonly attributes?: Attributes;
}

/** The traces of one process. */
export interface Tracing {
  /** The span of the running code, or `null` if there is none or it has ended. */
  readonly active: Span | null;
  begin(name: string, options: SpanOptions): Span;
  /** Runs `work` as part of the span, without ending it. */
  within<T>(span: Span, work: () => T): T;
  /** Runs `work` in a span of its own, which ends with it. */
  span<T>(name: string, options: SpanOptions, work: () => Promise<T>): Promise<T>;
  /** Makes spans of the statements of a pool that are part of a span. */
  watchPool(pool: pg.Pool): void;
  /** Sends what is left, within TRACE_FLUSH_MS. */
  close(): Promise<void>;
}

/** The active span of each asynchronous context. */
export type ActiveSpans = AsyncLocalStorage<Span>;

/** Returns the fields of a log line that name the active span. */
export function traceFields(spans: ActiveSpans): object {
  const span = spans.getStore();
  return span === undefined ? {} : { trace_id: span.traceId, span_id: span.spanId };
}
