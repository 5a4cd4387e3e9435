/** The topics of streams. */
export type Topic =
  | { readonly kind: 'jobs' | 'pulse' | 'records' }
  | { readonly kind: 'job'; readonly jobId: string };

const plainKinds = ['jobs', 'pulse', 'records'] as const;
const jobTopic = /^job:([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/i;

/** Returns null for what is no topic. */
export function readTopic(text: string): Topic | null {
  const plain = plainKinds.find((kind) => kind === text);
  if (plain !== undefined) return { kind: plain };
  const jobId = jobTopic.exec(text)?.[1]?.toLowerCase();
  return jobId === undefined ? null : { kind: 'job', jobId };
}

/** The same for the same topic of the same environment. */
export function channelName(environmentId: number, topic: Topic): string {
  return `${environmentId} ${topic.kind === 'job' ? topic.jobId : topic.kind}`;
}
