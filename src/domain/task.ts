/** Queue for most tasks. It takes tasks from each environment in turn. */
export const queueName = 'sluice';
/** Exports have their own queue, because an export takes minutes. */
export const exportQueueName = 'sluice-exports';

/**
 * Queues by the kind of task. The kinds are in lower case, because `worker-store.ts` searches for
 * sessions by these names.
 */
const taskQueues = {
  begin: queueName,
  chunk: queueName,
  finish: queueName,
  deletion: queueName,
  prune: queueName,
  export: exportQueueName,
} as const;
type CoreKind = keyof typeof taskQueues;

/** Tasks of capabilities do not wait in a queue (see `Runner`). */
export type TaskKindName = CoreKind | (string & {});

export function isOfCore(kind: TaskKindName): kind is CoreKind {
  return Object.hasOwn(taskQueues, kind);
}

export function queueOf(kind: TaskKindName): string {
  return isOfCore(kind) ? taskQueues[kind] : queueName;
}

/** Kinds of tasks that the queue takes from each environment in turn. */
export function kindsInTurn(queue: string): TaskKindName[] {
  return Object.keys(taskQueues).filter((kind) => queueOf(kind) === queue);
}

/** Environment id of tasks that belong to no environment. */
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

/** A task that a worker owns. Writes with the number of an earlier attempt are refused. */
export interface TaskClaim extends Task {
  readonly attempt: number;
  /** Errors since the task last made progress. */
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
  /** HTTP request that started the job, or `null`. */
  readonly requestId: string | null;
}

export function jobFields({ jobId, requestId }: JobIdentity): { job_id: string; request_id?: string } {
  return { job_id: jobId, ...(requestId !== null && { request_id: requestId }) };
}

/** Numbers of jobs by state. Completed jobs are not counted. */
export interface QueueCounts {
  readonly name: string;
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  readonly failed: number;
}

export const originKinds = ['api_key', 'person', 'schedule', 'inbox', 'command_line'] as const;

export interface Origin {
  readonly kind: (typeof originKinds)[number];
  /**
   * Id of the key or person, name of the schedule, or path in the inbox. `null` if there is no
   * name.
   */
  readonly name: string | null;
}

export function originColumns(origin: Origin | null): {
  readonly origin: string | null;
  readonly origin_name: string | null;
} {
  return { origin: origin?.kind ?? null, origin_name: origin?.name?.slice(0, maxNameChars) ?? null };
}

const maxNameChars = 500;
