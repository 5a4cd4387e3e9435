import type { JobDetail, Service } from './service.ts';

const times = 200;

/** Milliseconds from sending an array of 100 users to seeing its job completed. */
export async function measureLatency(
  service: Service,
): Promise<{ readonly p50: number; readonly p99: number }> {
  const taken: number[] = [];
  for (let round = 0; round < times; round++) taken.push(await once(service, round));
  taken.sort((a, b) => a - b);
  const at = (share: number): number => taken[Math.min(times - 1, Math.floor(times * share))] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}

async function once(service: Service, round: number): Promise<number> {
  const users = Array.from({ length: 100 }, (_, n) => ({
    user_id: `latency_${n}`,
    company_id: `cmp_${n % 7}`,
    metadata: { round, plan: 'free', name: `User ${n}` },
  }));
  const startedAt = performance.now();
  const response = await service.fetch('/v1/users/bulk_identify', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ users }),
  });
  const { job_id } = (await response.json()) as { job_id: string };
  for (;;) {
    const job = (await (await service.fetch(`/v1/background_jobs/${job_id}`)).json()) as JobDetail;
    if (job.status === 'completed') return performance.now() - startedAt;
    if (job.status === 'failed') throw new Error(job.failure?.message);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
