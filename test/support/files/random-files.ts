import fc from 'fast-check';
import type { Entity } from '../../../src/domain/entity.ts';
import type { SourceOptions } from '../../../src/domain/source.ts';
import type { Json, OracleRecord, Properties } from '../oracles/serial-oracle.ts';

/** A line of a file, and the record that the oracle applies for it. */
export interface Line {
  readonly text: string;
  readonly record: OracleRecord;
}

export interface RandomFile {
  readonly text: string;
  readonly records: readonly OracleRecord[];
  /** In CSV, the header names the id column. In NDJSON, each record names its id. */
  readonly format: 'csv' | 'ndjson';
  readonly source?: SourceOptions;
}

/** Only a few keys, names and values, so that they often collide. */
const key = fc.constantFrom('k0', 'k1', 'k2', 'k3', 'a\tb\\N', 'é "x"');
const companyKey = fc.constantFrom('c0', 'c1', 'c2');
const value: fc.Arbitrary<Json> = fc.constantFrom<Json>(
  '1',
  '2',
  'two\nlines, "quoted"',
  'ü€😀',
  1,
  2.5,
  true,
  null,
  null,
  ['1'],
  [1, null],
  { deep: null, x: '1' },
);
const properties = fc.dictionary(fc.constantFrom('a', 'b', 'c'), value, { maxKeys: 3 });

const badLines = ['{"user_id":"k0","a":', '[1]', '{"user_id":""}', '{"user_id":["k1"]}', '{"a":1}', 'x'];

const userLine = fc
  .record({
    id: key,
    beside: properties,
    metadata: properties,
    company: fc.oneof(
      { weight: 3, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.constant(null) },
      {
        weight: 3,
        arbitrary: fc.record({ id: companyKey, properties: fc.constant({}), object: fc.constant(false) }),
      },
      { weight: 3, arbitrary: fc.record({ id: companyKey, properties, object: fc.constant(true) }) },
    ),
  })
  .map(({ id, beside, metadata, company }): Line => {
    const members: Record<string, unknown> = { user_id: id, ...beside, metadata };
    if (company === null) members['company_id'] = null;
    else if (company?.object === true) members['company'] = { company_id: company.id, ...company.properties };
    else if (company !== undefined) members['company_id'] = company.id;
    const user = { entity: 'users', id, properties: { ...beside, ...metadata } } as const;
    const record = company === undefined ? user : { ...user, company };
    return { text: JSON.stringify(members), record };
  });

const companyLine = fc.record({ id: companyKey, properties }).map(
  ({ id, properties: metadata }): Line => ({
    text: JSON.stringify({ company_id: id, metadata }),
    record: { entity: 'companies', id, properties: metadata },
  }),
);

const badLine = fc.constantFrom(...badLines).map((text): Line => ({ text, record: 'rejected' }));

/** A file of users, of companies or of both, in which some records are refused. */
const ndjsonFile: fc.Arbitrary<RandomFile> = fc
  .constantFrom<readonly Entity[]>(['users'], ['companies'], ['users', 'companies'])
  .chain((entities) => {
    const lines = entities.map((entity) => ({
      weight: 8,
      arbitrary: entity === 'users' ? userLine : companyLine,
    }));
    const line = fc.oneof(...lines, { weight: 1, arbitrary: badLine });
    return fc.array(line, { minLength: 1, maxLength: 40, size: 'max' });
  })
  .map((lines) => ({
    text: `${lines.map(({ text }) => text).join('\n')}\n`,
    records: lines.map(({ record }) => record),
    format: 'ndjson',
  }));

const cell = fc.constantFrom(
  '',
  '',
  '1',
  '2',
  '007',
  'two\nlines',
  'a "quoted" cell',
  'back\\slash\t',
  '\\N',
  'ü',
);
const metadataCell = fc.option(
  fc.dictionary(fc.constantFrom('a', 'b', 'd'), fc.constantFrom<Json>('9', 9, null, { x: null }), {
    maxKeys: 2,
  }),
  { nil: null },
);

interface CsvShape {
  readonly entity: Entity;
  readonly delimiter: string;
  readonly terminator: string;
  readonly hasMetadata: boolean;
}

const csvShape: fc.Arbitrary<CsvShape> = fc.record({
  entity: fc.constantFrom<Entity>('users', 'users', 'companies'),
  delimiter: fc.constantFrom(',', ';', '\t', '|'),
  terminator: fc.constantFrom('\n', '\r\n', '\r'),
  hasMetadata: fc.boolean(),
});

function csvLine({ entity, delimiter, hasMetadata }: CsvShape): fc.Arbitrary<Line> {
  const wellFormed = fc
    .record({
      id: entity === 'users' ? key : companyKey,
      company: fc.option(companyKey, { nil: '' }),
      cells: fc.tuple(cell, cell, cell),
      metadata: metadataCell,
      quote: fc.boolean(),
    })
    .map(({ id, company, cells, metadata, quote }): Line => {
      const texts = [id, ...(entity === 'users' ? [company] : []), ...cells];
      if (hasMetadata) texts.push(metadata === null ? '' : JSON.stringify(metadata));
      const text = texts.map((each) => csvCell(each, delimiter, quote)).join(delimiter);
      const cellValues: Record<string, Json> = {};
      for (const [index, text] of cells.entries()) if (text !== '') cellValues['abc'[index] ?? ''] = text;
      const all: Properties = hasMetadata ? { ...cellValues, ...metadata } : cellValues;
      const profile = { entity, id, properties: all };
      const record =
        entity === 'users' && company !== ''
          ? { ...profile, company: { id: company, properties: {} } }
          : profile;
      return { text, record };
    });
  const columns = (entity === 'users' ? 5 : 4) + (hasMetadata ? 1 : 0);
  const bad = fc
    // Lines that are refused: with too few cells, with too many cells, without an id, and with a
    // misplaced quote. csv-scanner.test.ts tests which lines a misplaced quote affects.
    .constantFrom('k0', `k0${delimiter.repeat(9)}x`, `${delimiter}x${delimiter.repeat(columns - 2)}`, 'k1"x')
    .map((text): Line => ({ text, record: 'rejected' }));
  return fc.oneof({ weight: 9, arbitrary: wellFormed }, { weight: 1, arbitrary: bad });
}

function csvCell(text: string, delimiter: string, quote: boolean): string {
  const must = text.includes(delimiter) || /["\r\n]/.test(text);
  return must || quote ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * A file of users or companies, with any delimiter and line terminator. Cells may be quoted or
 * contain line breaks.
 */
const csvFile: fc.Arbitrary<RandomFile> = csvShape.chain((shape) => {
  const { entity, delimiter, terminator, hasMetadata } = shape;
  const columns =
    entity === 'users' ? ['user_id', 'company_id', 'a', 'b', 'c'] : ['company_id', 'a', 'b', 'c'];
  const more = hasMetadata ? ['metadata'] : [];
  const header = [...columns, ...more].join(delimiter);
  return fc.array(csvLine(shape), { minLength: 1, maxLength: 40, size: 'max' }).map((lines) => ({
    text: [header, ...lines.map(({ text }) => text)].join(terminator) + terminator,
    records: lines.map(({ record }) => record),
    format: 'csv' as const,
  }));
});

export const randomFile: fc.Arbitrary<RandomFile> = fc.oneof(csvFile, ndjsonFile);
