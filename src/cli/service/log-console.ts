import { format } from 'node:util';
import type { Logger } from 'pino';

/**
 * From now on what packages print as warnings is logged, each sentence once: BullMQ says of every connection what it thinks of
 * the settings of Redis, between the lines of JSON.
 */
export function logConsole(log: Logger): void {
  const said = new Set<string>();
  console.warn = (...words: unknown[]) => {
    const sentence = format(...words).replace(/\s+/g, ' ');
    if (!said.has(sentence)) log.warn(sentence);
    said.add(sentence);
  };
}
