/** Run by `lake.ts`: counts the events of the lake for segments, and says how much memory that took. */
import { pino } from 'pino';
import { readConfig } from '../src/config.ts';
import { openSystem } from '../src/context.ts';
import { previewSegment } from '../src/profiles/segments.ts';
import { readSegment } from '../src/segments/read-segment.ts';
import { measure, mostMemory } from './lake-export.ts';

const [databaseUrl = '', dataDir = '', environmentId, events] = process.argv.slice(2);
const config = readConfig({ ...process.env, DATA_DIR: dataDir });
const system = openSystem({
  config,
  databaseUrl,
  log: pino({ level: 'silent' }),
  role: 'bench',
  poolSize: 4,
});
const any = Array.from({ length: 20 }, (_, n) => ({ event: `event_${n}`, at_least: 2 }));
const where = [{ property: 'duration_ms', less_than: 100 }];
try {
  for (const definition of [any[7], { any }, { event: 'event_7', where }]) {
    const { segment } = readSegment(definition);
    if (segment === null) throw new Error('no segment');
    const { seconds, peak } = await measure<unknown>(() =>
      previewSegment(system, Number(environmentId), segment, { timeoutMs: 60_000 }),
    );
    const what = JSON.stringify(definition).slice(0, 60);
    const rate = Math.round(Number(events) / seconds);
    process.stdout.write(`${what}: ${seconds.toFixed(1)} s, ${rate} events/s, peak ${peak} MiB\n`);
  }
  process.send?.(mostMemory());
} finally {
  await system.close();
  process.disconnect?.();
}
