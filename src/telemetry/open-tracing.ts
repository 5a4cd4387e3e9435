import { AsyncLocalStorage } from 'node:async_hooks';
import type { Logger } from 'pino';
import type { ActiveSpans, Tracing } from './tracing.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Tells whether the environment asks for traces. */
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

/** Returns `null` if the environment asks for no traces. */
export function openActiveSpans(environment: Environment): ActiveSpans | null {
  return wantsTraces(environment) ? new AsyncLocalStorage() : null;
}

export async function openTracing(
  spans: ActiveSpans | null,
  role: string,
  log: Logger,
): Promise<Tracing | null> {
  if (spans === null) return null;
  const { startTracing } = await import('./open-telemetry.ts');
  return startTracing(spans, role, log);
}
