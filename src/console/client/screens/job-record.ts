/* Jobs as the API shows them. */

export interface JobItem {
  readonly job_id: string;
  readonly type: string;
  readonly status: string;
  readonly filename: string;
  readonly file_size: number;
  readonly total_rows: number;
  readonly start_time: string;
  readonly end_time: string | null;
  readonly elapsed_time: number;
}

export const jobTypeNames: Readonly<Record<string, string>> = {
  import: 'File',
  bulk_identify_users: 'Users',
  bulk_identify_companies: 'Companies',
  export: 'Export',
  delete_users: 'Delete users',
  delete_companies: 'Delete companies',
};
