import { UsageError } from './exit-codes.ts';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Throws `UsageError` for what cannot be one, before the database is asked. */
export function requireJobId(text: string): string {
  if (uuid.test(text)) return text.toLowerCase();
  throw new UsageError(`${JSON.stringify(text)} is not a job id; \`sluice jobs list\` shows them.`);
}
