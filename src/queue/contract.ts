import type { TaskKindName } from '../domain/task.ts';

/** What a job says: something is due. It carries ids and a version, never rows: it may outlive a deployment. */
export interface TaskPayload {
  readonly v: 1;
  readonly taskId: number;
  readonly attempt: number;
}

/** The jobs there are: one for each kind of task, and those that have no task yet. */
export interface JobPayloads extends Readonly<Record<TaskKindName, TaskPayload>> {}

export type JobName = keyof JobPayloads;

/** What each job does. */
export type JobHandlers = { readonly [N in JobName]: (payload: JobPayloads[N]) => Promise<void> };
