/** The jobs there are. A payload carries ids and a version, never rows: it may outlive a deployment. */
export const queueName = 'sluice';
/** Exports take minutes, and must not keep the workers from the chunks of loads: they have a queue of their own. */
export const exportQueueName = 'sluice-exports';

export interface JobPayloads {
  readonly 'process-chunk': { readonly v: 1; readonly loadId: number; readonly chunkNo: number };
  readonly 'finish-load': { readonly v: 1; readonly loadId: number };
  readonly 'run-deletion': { readonly v: 1; readonly deletionId: number };
  readonly 'prune-files': { readonly v: 1 };
  readonly 'run-export': { readonly v: 1; readonly exportId: number };
  /** A schedule may be due. */
  readonly 'ring-schedules': { readonly v: 1 };
  /** One notification for one receiver; ends at once, since the worker sends it beside its jobs. */
  readonly 'deliver-notification': { readonly v: 1; readonly deliveryId: number };
}

export type JobName = keyof JobPayloads;

/** What each job does. */
export type JobHandlers = { readonly [N in JobName]: (payload: JobPayloads[N]) => Promise<void> };
