/** The queues. What waits in one is taken in fair turns of the environments, whatever its kind. */
export const queueName = 'sluice';
/** Exports take minutes, and must not keep the workers from the chunks of loads: they have a queue of their own. */
export const exportQueueName = 'sluice-exports';

/** The core's kinds of background work, with the queue of each; `jobs/<kind>.ts` has the rest. In lower case: they name sessions. */
const taskQueues = {
  begin: queueName,
  chunk: queueName,
  finish: queueName,
  deletion: queueName,
  prune: queueName,
  export: exportQueueName,
} as const;
type CoreKind = keyof typeof taskQueues;

/** A kind of the core, or one that a capability does beside the jobs of the queue. */
export type TaskKindName = CoreKind | (string & {});

export function isOfCore(kind: TaskKindName): kind is CoreKind {
  return Object.hasOwn(taskQueues, kind);
}

export function queueOf(kind: TaskKindName): string {
  return isOfCore(kind) ? taskQueues[kind] : queueName;
}

/** Lists the kinds among which environments take turns. */
export function kindsInTurn(queue: string): TaskKindName[] {
  return Object.keys(taskQueues).filter((kind) => queueOf(kind) === queue);
}

/** The environment of tasks that belong to none. */
export const SYSTEM_ENVIRONMENT_ID = 0;

export interface Task {
  readonly taskId: number;
  readonly kind: TaskKindName;
  readonly subjectId: number;
  readonly part: number;
  readonly environmentId: number;
  readonly jobId: string | null;
  readonly requestId: string | null;
}

/** A task that a worker owns. The attempt number fences every write it makes. */
export interface TaskClaim extends Task {
  readonly attempt: number;
  /** Errors that counted since it last got on. */
  readonly failures: number;
}

export interface DueTask {
  readonly taskId: number;
  readonly kind: TaskKindName;
  readonly attempt: number;
}

export interface TaskFailure {
  readonly code: string;
  readonly message: string;
}

/** Returns the fields of every log line about a task; see `jobFields`. */
export function taskFields(task: Task): Readonly<Record<string, string | number>> {
  return {
    ...(task.jobId !== null && { job_id: task.jobId }),
    ...(task.requestId !== null && { request_id: task.requestId }),
    task: task.kind,
    ...(task.kind === 'chunk' && { chunk: task.part }),
  };
}

export interface JobIdentity {
  readonly jobId: string;
  /** The HTTP request that made it; `null` if it came another way. */
  readonly requestId: string | null;
}

/** Returns the fields of every log line about a job, in whichever process. */
export function jobFields({ jobId, requestId }: JobIdentity): { job_id: string; request_id?: string } {
  return { job_id: jobId, ...(requestId !== null && { request_id: requestId }) };
}

/** The jobs in a queue. Those that are done or failed leave no trace in it. */
export interface QueueCounts {
  readonly name: string;
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  readonly failed: number;
}

export const originKinds = ['api_key', 'schedule', 'inbox', 'command_line'] as const;

export interface Origin {
  readonly kind: (typeof originKinds)[number];
  /** Id of the key, name of the schedule, or place in the inbox; null: there is none. */
  readonly name: string | null;
}

export function originColumns(origin: Origin | null): {
  readonly origin: string | null;
  readonly origin_name: string | null;
} {
  return { origin: origin?.kind ?? null, origin_name: origin?.name?.slice(0, maxNameChars) ?? null };
}

const maxNameChars = 500;
