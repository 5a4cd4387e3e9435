/*
 * Traces, where the standard variables of OpenTelemetry ask for them; without them the SDK is not loaded, and
 * `System.tracing` is null. A trace goes from a request to the chunks of its job, in whichever process, and to their statements:
 * `job_traces` keeps the context of a job. docs/tracing.md is for operators.
 */
import type { AsyncLocalStorage } from 'node:async_hooks';
import type pg from 'pg';
import type { SpanIdentity } from '../domain/trace.ts';

export interface Span extends SpanIdentity {
  readonly isEnded: boolean;
  set(attributes: Attributes): void;
  /** Of an error no more than its sort: messages may hold data. */
  fail(error: unknown): void;
  /** Once; later calls do nothing. */
  end(): void;
}

type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOptions {
  readonly kind: 'server' | 'consumer' | 'client' | 'internal';
  /** Default: what runs now; null: it begins a trace. */
  readonly parent?: SpanIdentity | null;
  /** Others that it does the work of. */
  readonly links?: readonly SpanIdentity[];
  readonly attributes?: Attributes;
}

/** The traces of one process. */
export interface Tracing {
  /** The span that what runs now belongs to; null: none, or one that has ended. */
  readonly active: Span | null;
  begin(name: string, options: SpanOptions): Span;
  /** Runs `work` as part of the span, without ending it. */
  within<T>(span: Span, work: () => T): T;
  /** Runs `work` in a span of its own, which ends with it. */
  span<T>(name: string, options: SpanOptions, work: () => Promise<T>): Promise<T>;
  /** From now on the statements of its connections are spans, where they are part of one. */
  watchPool(pool: pg.Pool): void;
  /** Sends what is left, within TRACE_FLUSH_MS. */
  close(): Promise<void>;
}

/** Which span is active where; the log asks it. */
export type ActiveSpans = AsyncLocalStorage<Span>;

/** What the lines of the log say of the active span. */
export function traceFields(spans: ActiveSpans): object {
  const span = spans.getStore();
  return span === undefined ? {} : { trace_id: span.traceId, span_id: span.spanId };
}
