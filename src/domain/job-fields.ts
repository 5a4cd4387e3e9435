/** A job of the ledger: a load, an export or a deletion. */
export interface JobIdentity {
  readonly jobId: string;
  /** Of the HTTP request that it came by; null if it came another way. */
  readonly requestId: string | null;
}

/** What every line of the log about a job carries, in whichever process: the way from a request to all it caused. */
export function jobFields({ jobId, requestId }: JobIdentity): { job_id: string; request_id?: string } {
  return { job_id: jobId, ...(requestId !== null && { request_id: requestId }) };
}
