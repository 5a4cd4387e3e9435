import { type TSchema, Type } from 'typebox';
import { companyItem, userItem } from '../../api/record.ts';
import { withExamples } from '../../api/schema.ts';
import type { Entity, LoadEntity } from '../../domain/entity.ts';
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

const binary = (description: string) => ({ schema: Type.String({ format: 'binary', description }) });

export const packedBody = binary('CSV, NDJSON or a JSON array, compressed with gzip.');
export const columnarBody = binary(
  'A Parquet file or an Avro object container file. A null leaves the property unchanged.',
);
export const workbookBody = binary(
  'An Excel workbook (.xlsx). Its first sheet with data, or the one that `sheet` names, is read like CSV.',
);
export const archiveBody = binary('A ZIP archive that contains one such file.');
const anyFile =
  'CSV, NDJSON, a JSON array, Excel (.xlsx), Parquet or Avro, plain, gzipped or in a ZIP archive.';
export const anyBody = binary(anyFile);

/** An array of any length, bare or under the name of its items. */
function arrayBody(entity: Entity, item: TSchema, example: object) {
  const items = Type.Array(item, { minItems: 1, description: `The ${entity}.` });
  const envelope = Type.Object({ [entity]: items }, { additionalProperties: true });
  const name = `${entity.charAt(0).toUpperCase()}${entity.slice(1)}`;
  const description = `${name}: an array of any length, bare or under \`${entity}\`.`;
  return withExamples(Type.Union([envelope, Type.Array(item, { minItems: 1 })], { description }), {
    [entity]: { summary: name, value: { [entity]: [example] } },
    array: { summary: 'A bare array', value: [example] },
  });
}

export const usersBody = arrayBody('users', userItem.ref, {
  user_id: 'u1',
  metadata: { plan: 'pro', logins: 7 },
});

export const companiesBody = arrayBody('companies', companyItem.ref, {
  company_id: 'acme',
  metadata: { name: 'Acme GmbH', size: 120 },
});

export function formBody(entities: readonly LoadEntity[], exampleFile = csvText) {
  const fields: Record<string, TSchema> = {
    ...uploadOptions(entities),
    file: Type.String({ format: 'binary', description: `The file: ${anyFile}` }),
  };
  return withExamples(
    Type.Object(fields, { additionalProperties: false, description: 'A file and options.' }),
    {
      file: { summary: 'A file', value: { file: exampleFile } },
      options: { summary: 'A file and an option', value: { max_errors: '5%', file: exampleFile } },
    },
  );
}
