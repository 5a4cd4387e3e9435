interface JobState {
  readonly status: string;
  readonly failure?: { readonly message: string } | null;
}

/** Polls a job until `pick` returns a result. Throws if the job fails or is cancelled. */
export async function until<J extends JobState, T>(
  look: () => Promise<J>,
  pick: (job: J) => T | undefined,
): Promise<T> {
  while (true) {
    const job = await look();
    const result = pick(job);
    if (result !== undefined) return result;
    if (job.status === 'failed' || job.status === 'cancelled') throw new Error(job.failure?.message);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Returns the ids in a file of users. */
export async function readIds(url: string): Promise<string[]> {
  const lines = (await (await fetch(url)).text()).trim().split('\n');
  return lines.map((line) => JSON.parse(line).user_id).sort();
}

export const person = {
  user_id: 'ada',
  metadata: { name: 'Ada Lovelace', logins: 7, tags: ['math'] },
  company: { company_id: 'acme', size: 120 },
};
export const event = {
  user_id: 'ada',
  event_name: 'report_exported',
  event_id: 'one',
  metadata: { rows: 1200 },
};
export const users = 'user_id,name\nu1,Ada\n,Nobody\n';
export const unknownJob = '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01';
