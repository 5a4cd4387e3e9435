import { writeCompanies, writeUsers } from '../postgres/ingest/write-profiles.ts';
import type { IngestContext } from './context.ts';
import { NewProperties } from './new-properties.ts';
import { companyRows, userRows } from './profile-rows.ts';
import type { RecordWriter } from './record-writer.ts';
import type { CompanyRecord, UserRecord } from './records.ts';

/** Users, and the companies they name. */
export function userWriter({
  catalogue,
  db,
}: IngestContext): RecordWriter<UserRecord, ReturnType<typeof userRows>> {
  return {
    async prepare(records) {
      const found = new NewProperties(catalogue);
      const rows = userRows(records, found);
      await found.note(db);
      return rows;
    },
    write: (connection, { users, companies }) => writeUsers(connection, users, companies),
  };
}

export function companyWriter({
  catalogue,
  db,
}: IngestContext): RecordWriter<CompanyRecord, ReturnType<typeof companyRows>> {
  return {
    async prepare(records) {
      const found = new NewProperties(catalogue);
      const rows = companyRows(records, found);
      await found.note(db);
      return rows;
    },
    write: writeCompanies,
  };
}
