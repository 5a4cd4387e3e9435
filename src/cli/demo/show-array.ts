import { setTimeout as delay } from 'node:timers/promises';
import { CommandFailed } from '../exit-codes.ts';
import type { Client } from './client.ts';
import { companyId, userCells, userId } from './csv-lines.ts';
import type { DemoStage } from './show-loads.ts';

const size = 100;
const pollMs = 5;

/** A small array, from the request to the job's end: what an application would send every few minutes. */
export async function showArray({ cli, signal, heading, flags }: DemoStage, client: Client): Promise<void> {
  cli.terminal.print(heading(`7  An array of ${size} users, there and back`));
  const users = Array.from({ length: size }, (_, index) => {
    const n = flags.users + index;
    const [, , name = '', email = ''] = userCells(n, flags.companies);
    const metadata = { name, email, trial: true, seats: index };
    return { user_id: userId(n), company_id: companyId(index), metadata };
  });
  const startedAt = performance.now();
  const { job_id: jobId } = await client.post('/v1/users/bulk_identify', { users });
  const acceptedMs = performance.now() - startedAt;
  for (;;) {
    const job = await client.job(jobId);
    if (job.status === 'completed') break;
    if (job.status === 'failed')
      throw new CommandFailed(`The array's job failed: ${job.failure?.message ?? ''}`);
    await delay(pollMs, undefined, { signal });
  }
  const ms = performance.now() - startedAt;
  cli.terminal.print(
    `   POST /v1/users/bulk_identify: accepted after ${acceptedMs.toFixed(0)} ms, completed after ${ms.toFixed(0)} ms`,
  );
}
