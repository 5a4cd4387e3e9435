/** Queue of most tasks, in which environments take fair turns. */
export const queueName = 'sluice';
/** Queue of exports, which take minutes. */
export const exportQueueName = 'sluice-exports';

/** Queues of the core's kinds (`jobs/<kind>.ts`). Lower case, since sessions have these names. */
const taskQueues = {
  begin: queueName,
  chunk: queueName,
  finish: queueName,
  deletion: queueName,
  prune: queueName,
  export: exportQueueName,
} as const;
type CoreKind = keyof typeof taskQueues;

/** A kind of the core, or of a capability beside the queue's jobs. */
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

/** Environment of tasks without one. */
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

/** A task that a worker owns. The attempt fences its writes. */
export interface TaskClaim extends Task {
  readonly attempt: number;
  /** Errors since the last progress. */
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

/** Log fields of a task. */
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
  /** Id of the HTTP request. `null` if no request started the job. */
  readonly requestId: string | null;
}

/** Log fields of a job. */
export function jobFields({ jobId, requestId }: JobIdentity): { job_id: string; request_id?: string } {
  return { job_id: jobId, ...(requestId !== null && { request_id: requestId }) };
}

/** Numbers of a queue's jobs, except completed ones. */
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
  /** Key id, schedule name or path in the inbox. `null` for none. */
  readonly name: string | null;
}

export function originColumns(origin: Origin | null): {
  readonly origin: string | null;
  readonly origin_name: string | null;
} {
  return { origin: origin?.kind ?? null, origin_name: origin?.name?.slice(0, maxNameChars) ?? null };
}

const maxNameChars = 500;
