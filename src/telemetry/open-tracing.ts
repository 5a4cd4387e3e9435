import { AsyncLocalStorage } from 'node:async_hooks';
import type { Logger } from 'pino';
import type { ActiveSpans, Tracing } from './tracing.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether traces are asked for. */
export function wantsTraces(environment: Environment): boolean {
  const value = (name: string): string => environment[name]?.trim() ?? '';
  if (value('OTEL_SDK_DISABLED').toLowerCase() === 'true') return false;
  const exporters = value('OTEL_TRACES_EXPORTER');
  if (exporters !== '') return exporters.split(',').some((name) => name.trim() === 'otlp');
  return value('OTEL_EXPORTER_OTLP_ENDPOINT') !== '' || value('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') !== '';
}

/** Null: nobody asks for traces. */
export function openActiveSpans(environment: Environment): ActiveSpans | null {
  return wantsTraces(environment) ? new AsyncLocalStorage() : null;
}

/** Null: nobody asks for traces, and nothing is loaded. */
export async function openTracing(
  spans: ActiveSpans | null,
  role: string,
  log: Logger,
): Promise<Tracing | null> {
  if (spans === null) return null;
  const { startTracing } = await import('./open-telemetry.ts');
  return startTracing(spans, role, log);
}
