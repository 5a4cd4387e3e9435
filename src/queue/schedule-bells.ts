import { queueName } from '../domain/task.ts';
import type { QueueBackend } from './backend.ts';
import type { JobPayloads } from './contract.ts';

/** When the queue is to ring. */
export interface ScheduleBell {
  /** The same from every process. */
  readonly id: string;
  readonly cron: string;
  readonly timeZone: string;
}

const prefix = 'schedule-';

/**
 * Makes the queue ring for these schedules and for no others. Only a bell: rounds find what is due without it, a moment
 * later. What is as it should be is left alone.
 */
export async function setScheduleBells(
  backend: QueueBackend,
  bells: readonly ScheduleBell[],
  name = queueName,
): Promise<{ set: number; removed: number }> {
  const queue = backend.createQueue(name, {});
  queue.on('error', () => undefined);
  try {
    const found = (await queue.getJobSchedulers(0, -1)).filter(({ key }) => key.startsWith(prefix));
    const wanted = new Map(bells.map((bell) => [`${prefix}${bell.id}`, bell]));
    const stale = found.filter(({ key }) => !wanted.has(key));
    for (const { key } of stale) await queue.removeJobScheduler(key);
    const data: JobPayloads['ring-schedules'] = { v: 1 };
    const opts = { attempts: 1, removeOnComplete: true, removeOnFail: true };
    let set = 0;
    for (const [id, { cron: pattern, timeZone: tz }] of wanted) {
      if (found.some((each) => each.key === id && each.pattern === pattern && each.tz === tz)) continue;
      await queue.upsertJobScheduler(id, { pattern, tz }, { name: 'ring-schedules', data, opts });
      set++;
    }
    return { set, removed: stale.length };
  } finally {
    await queue.close();
  }
}
