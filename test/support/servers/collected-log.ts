import { type Logger, pino } from 'pino';

export interface CollectedLog {
  readonly log: Logger;
  readonly lines: readonly Readonly<Record<string, unknown>>[];
}

export function collectLog(): CollectedLog {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>);
  return { log: pino({ level: 'info' }, { write }), lines };
}
