import { test } from 'vitest';
import { newEnvironment } from '../support/load-file.ts';
import { openTestSystem } from '../support/system.ts';
import { loadFile, undo } from '../support/undo.ts';

test('bench', async () => {
  const t = await openTestSystem();
  const environmentId = await newEnvironment(t.system);
  const n = 150_000;
  const file = (plan: string) =>
    `user_id,plan,name,email,city,country,seats,score,tier,last,team\n${Array.from({ length: n }, (_, i) => `user-${i},${plan},Name ${i},u${i}@example.com,City ${i % 1000},NL,${i % 50},${i * 7},gold,2026-11-${(i % 28) + 1},team ${i % 300}`).join('\n')}\n`;
  const time = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    const [start, cpu] = [performance.now(), process.cpuUsage()];
    const result = await work();
    const used = process.cpuUsage(cpu);
    console.log(what, Math.round(performance.now() - start), 'ms; node', Math.round((used.user + used.system) / 1000), 'ms');
    return result;
  };
  await time('first', () => loadFile(t.system, environmentId, file('pro')));
  const wrong = await time('change', () => loadFile(t.system, environmentId, file('free')));
  const done = await time('undo', () => undo(t.system, environmentId, [wrong.jobId]));
  console.log(JSON.stringify(done.tally));
  const again = await time('change', () => loadFile(t.system, environmentId, file('free')));
  await time('undo', () => undo(t.system, environmentId, [again.jobId]));
  const { rows } = await t.system.pool.query("select kind, claimed_at from sluice.tasks limit 1");
  void rows;
  await t.close();
}, 280_000);
