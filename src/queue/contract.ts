/** The jobs there are. A payload carries ids and a version, never rows: it may outlive a deployment. */
export const queueName = 'sluice';

export interface JobPayloads {
  readonly 'process-chunk': { readonly v: 1; readonly loadId: number; readonly chunkNo: number };
  readonly 'finish-load': { readonly v: 1; readonly loadId: number };
  readonly 'prune-files': { readonly v: 1 };
}

export type JobName = keyof JobPayloads;

/** What each job does. */
export type JobHandlers = { readonly [N in JobName]: (payload: JobPayloads[N]) => Promise<void> };
