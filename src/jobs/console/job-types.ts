import { parts } from 'sluice:capabilities';

export const ownJobTypes = new Map(parts.flatMap(({ jobTypes = {} }) => Object.entries(jobTypes)));

export const jobTypeNames: Readonly<Record<string, string>> = {
  import: 'File',
  bulk_identify_users: 'Users, in bulk',
  bulk_identify_companies: 'Companies, in bulk',
  ...Object.fromEntries([...ownJobTypes].map(([type, { name }]) => [type, name])),
  export: 'Export',
  delete_users: 'Deletion of users',
  delete_companies: 'Deletion of companies',
};
