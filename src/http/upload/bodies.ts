import { type TSchema, Type } from 'typebox';
import { companyItem, userItem } from '../../api/record.ts';
import { withExamples } from '../../api/schema.ts';
import type { LoadEntity } from '../../domain/entity.ts';
import { uploadOptions } from './options.ts';

const csvText = 'user_id,name,plan,company_id\nu1,Ada Lovelace,free,acme\nu2,"Hopper, Grace",pro,acme\n';

const ndjsonText =
  '{"user_id":"u1","company_id":"acme","metadata":{"plan":"pro","logins":7}}\n{"user_id":"u2","email":"grace@example.com"}\n';

export const csvBody = withExamples(
  Type.String({
    description:
      'CSV with a header that contains `user_id` or `company_id`. Every other column is a property. Delimiter, line ends and encoding are detected.',
  }),
  { users: { summary: 'Users', value: csvText } },
);

export const tsvBody = withExamples(Type.String({ description: 'CSV with tabs as delimiters.' }), {
  users: { summary: 'Users', value: 'user_id\tname\nu1\tAda Lovelace\n' },
});

export const ndjsonBody = withExamples(
  Type.String({
    description: 'One JSON object per line: a user if it has `user_id`, otherwise a company.',
  }),
  { users: { summary: 'Users', value: ndjsonText } },
);

export const packedBody = {
  schema: Type.String({
    format: 'binary',
    description: 'CSV, NDJSON or a JSON array, compressed with gzip.',
  }),
};

export const columnarBody = {
  schema: Type.String({
    format: 'binary',
    description: 'A Parquet file or an Avro object container file. A null leaves the property unchanged.',
  }),
};

export const workbookBody = {
  schema: Type.String({
    format: 'binary',
    description:
      'An Excel workbook (.xlsx). Its first sheet with data, or the one that `sheet` names, is read like CSV.',
  }),
};

export const archiveBody = {
  schema: Type.String({ format: 'binary', description: 'A ZIP archive that contains one such file.' }),
};

export const anyBody = {
  schema: Type.String({
    format: 'binary',
    description:
      'CSV, NDJSON, a JSON array, Excel (.xlsx), Parquet or Avro, plain, gzipped or in a ZIP archive.',
  }),
};

const usersArray = {
  summary: 'Users',
  value: { users: [{ user_id: 'u1', metadata: { plan: 'pro', logins: 7 } }] },
};

const companiesArray = {
  summary: 'Companies',
  value: { companies: [{ company_id: 'acme', metadata: { name: 'Acme GmbH', size: 120 } }] },
};

const envelopes = {
  users: Type.Object(
    { users: Type.Array(userItem.ref, { minItems: 1, description: 'The users.' }) },
    { additionalProperties: true },
  ),
  companies: Type.Object(
    { companies: Type.Array(companyItem.ref, { minItems: 1, description: 'The companies.' }) },
    { additionalProperties: true },
  ),
};

export const usersBody = withExamples(
  Type.Union([envelopes.users, Type.Array(userItem.ref, { minItems: 1 })], {
    description: 'Users: an array of any length, bare or under `users`.',
  }),
  { users: usersArray, array: { summary: 'A bare array', value: usersArray.value.users } },
);

export const companiesBody = withExamples(
  Type.Union([envelopes.companies, Type.Array(companyItem.ref, { minItems: 1 })], {
    description: 'Companies: an array of any length, bare or under `companies`.',
  }),
  { companies: companiesArray, array: { summary: 'A bare array', value: companiesArray.value.companies } },
);

export function formBody(entities: readonly LoadEntity[], exampleFile = csvText) {
  const fields: Record<string, TSchema> = {
    ...uploadOptions(entities),
    file: Type.String({
      format: 'binary',
      description:
        'The file: CSV, NDJSON, a JSON array, Excel (.xlsx), Parquet or Avro, plain, gzipped or in a ZIP archive.',
    }),
  };
  return withExamples(
    Type.Object(fields, { additionalProperties: false, description: 'A file and options.' }),
    {
      file: { summary: 'A file', value: { file: exampleFile } },
      options: { summary: 'A file and an option', value: { max_errors: '5%', file: exampleFile } },
    },
  );
}
