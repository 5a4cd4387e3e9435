import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { packageRoot } from '../../../src/base/package-root.ts';
import type { Confinement } from '../../../src/capabilities/schedules/confinement.ts';
import {
  readSchedulesFile as readFileOf,
  schedulesFileSchema,
} from '../../../src/capabilities/schedules/file.ts';
import { readCommandsFile } from '../../../src/capabilities/schedules/source-command.ts';
import { toFileOptions } from '../../../src/domain/load-options.ts';
import { OptionTable } from '../../../src/domain/option-table.ts';
import { ExportOptions } from '../../../src/export/options.ts';

const variables = ['PARTNER_TOKEN', 'ARCHIVE_KEY', 'ARCHIVE_SECRET'];
const confinement: Confinement = {
  environment: 'default',
  granted: variables.map((name) => `default:SCHEDULE_${name}`),
  localRoots: ['/in'],
  exportRoots: [],
  commands: new Map([['shop', { run: ['psql', '{hours}'] }]]),
};
const jobOptions = { optionTable: new OptionTable([]), exportOptions: new ExportOptions([]) };
const readSchedulesFile = (bytes: Uint8Array) => readFileOf(jobOptions, bytes, confinement);

function problemsOf(text: string): string[] {
  const { problems } = readSchedulesFile(Buffer.from(text));
  return problems.map(({ line, message }) => `${line}: ${message}`);
}

const http = (lines: string): string => `schedules:
  - name: a
    cron: "@daily"
    load:
      http:
${lines}`;

describe('a schedules file', () => {
  test('the sample of schedules is valid for the reader and for its schema', async () => {
    const bytes = await readFile(join(packageRoot, 'docs/samples/schedules.yaml'));
    const { value, problems } = readSchedulesFile(bytes);
    expect(problems).toEqual([]);
    expect(value?.map(({ name, timezone }) => `${name} ${timezone}`)).toContain('archive UTC');
    expect(value?.[0]).toMatchObject({
      timezone: 'Europe/Berlin',
      missed: 'run_once',
      missed_within: '1d',
      overlap: 'skip',
      notify: { emails: ['ada@example.com'], on: ['completed_with_rejects', 'failed'] },
      load: { if_duplicate: 'skip', max_errors: '5%' },
    });
    const validate = new Ajv2020({ strict: false }).compile(schedulesFileSchema(jobOptions));
    expect(validate(parse(bytes.toString()))).toBe(true);
    expect(validate({ schedules: [{ name: 'a', cron: '@daily' }] })).toBe(false);
  });

  describe('the form of files in a schedule', () => {
    const load = (lines: string): string =>
      `schedules:\n  - name: a\n    cron: "@daily"\n    load:\n      files: { pattern: x }\n${lines}`;

    // proves: source-options
    test('a schedule takes the options of an upload', () => {
      const { value, problems } = readSchedulesFile(
        Buffer.from(
          load(
            '      encoding: latin1\n      delimiter: semicolon\n      header: none\n      null: [NA, "NULL"]\n',
          ),
        ),
      );
      expect(problems).toEqual([]);
      const definition = value?.[0]?.load;
      expect(
        definition && toFileOptions(jobOptions.optionTable, definition, definition.entity).source,
      ).toEqual({
        encoding: 'windows-1252',
        delimiter: ';',
        header: 'none',
        nulls: ['NA', 'NULL'],
      });
    });

    test('every wrong or contradictory option of a schedule is reported with its line', () => {
      const lines =
        '      header: 0\n      skip_rows: "2"\n      null: [NULL]\n      comment: #\n      delimiter: x\n';
      expect(problemsOf(load(lines))).toEqual([
        '6: schedules[0].load.header must be none, or a number from 1 to 10000, not the number 0',
        '7: schedules[0].load.skip_rows must be a number from 0 to 1000000, not "2"',
        expect.stringMatching(
          /^8: schedules\[0\]\.load\.null\[0\] must be a text of .*, not nothing; put text in quotes$/,
        ),
        expect.stringMatching(
          /^9: schedules\[0\]\.load\.comment must be none, or .*, not nothing; put text in quotes$/,
        ),
        expect.stringMatching(/^10: schedules\[0\]\.load\.delimiter must be comma, .*, not "x"$/),
      ]);
      expect(problemsOf(load('      delimiter: "\'"\n      quote: "\'"\n'))).toEqual([
        '7: schedules[0].load.quote is part of the delimiter',
      ]);
    });
  });

  test('every problem of a schedules file is reported with its line', () => {
    const text = `timezone: Mars/Olympus
schedules:
  - name: a
    cron: "0 3 * *"
    load:
      files: { pattern: ../secret.csv }
  - name: a
    cron: "0 0 30 2 *"
    missed_within: tomorrow
    load: { files: { pattern: x }, http: { url: "https://x.example" } }
  - name: B
    cron: "@daily"
  - name: c
    cron: "@daily"
    color: red
    export:
      range: yesterday
      include_removed: true
      from: 2026-01-01
      format: xml
      emails:
        - not an address
    notify: { emails: [x@example.com], on: [never] }
`;
    expect(problemsOf(text)).toEqual([
      '1: timezone is no time zone; write one such as Europe/Berlin or UTC',
      '4: schedules[0].cron must have five fields: minute, hour, day of the month, month, day of the week',
      '6: schedules[0].load.files.pattern must not hold ..',
      '7: schedules[1].name is "a", as in line 3; each item needs a name of its own',
      expect.stringMatching(/^8: schedules\[1\]\.cron is no cron expression/),
      '9: schedules[1].missed_within must be a time such as 30m, 24h or 7d, not "tomorrow"',
      '10: schedules[1].load must have exactly one of files, http, s3, command',
      expect.stringMatching(/^11: schedules\[2\] must have either load or export/),
      expect.stringMatching(/^11: schedules\[2\]\.name must be 1 to 63 of/),
      expect.stringMatching(/^15: schedules\[3\]\.color is unknown; a schedule has name, /),
      expect.stringMatching(/^17: schedules\[3\]\.export has a range as well as from, to or since/),
      expect.stringMatching(
        /^18: schedules\[3\]\.export\.include_removed goes with the range since_last_success/,
      ),
      expect.stringMatching(/^19: schedules\[3\]\.export\.from is wrong: include_removed cannot tell/),
      expect.stringMatching(/^20: schedules\[3\]\.export\.format is wrong: format is one of/),
      expect.stringMatching(/^22: schedules\[3\]\.export\.emails\[0\] is wrong: /),
      expect.stringMatching(/^23: schedules\[3\]\.notify\.on\[0\] must be completed or/),
    ]);
  });

  test.each([
    ['http://x.example/a', /^6: .*url is unencrypted/],
    ['ftp://x.example/a', /must be a URL that begins with https/],
    ['https://me:secret@x.example/a', /must not hold a user/],
    ['https://x.example/${env:DATABASE_URL}', /may hold \$\{env:NAME\} only/],
    ['https://x.example/${SCHEDULE_X}', /may hold \$\{env:NAME\} only/],
  ])('the URL %s is refused', (url, message) => {
    expect(problemsOf(http(`        url: "${url}"`))).toEqual([expect.stringMatching(message)]);
  });

  test('reserved headers and malformed names of headers are refused', () => {
    const headers =
      '        url: https://x.example/a\n        headers:\n          Host: other\n          "a b": c';
    expect(problemsOf(http(headers))).toEqual([
      '8: schedules[0].load.http.headers.Host is set by sluice itself',
      '9: schedules[0].load.http.headers["a b"] is no name of a header',
    ]);
  });

  // proves: command-confined
  test.each([
    ['a value that begins with -', '{a: -rf}', /parameters\.a must not begin with -$/],
    ['a value of two lines', '{a: "x\\ny"}', /parameters\.a must be one line/],
    ['a name that is no placeholder', '{A: x}', /parameters\.A must be a-z, 0-9 and _/],
    ['a list', '[x]', /parameters must be an object of at most 100 texts, not a list$/],
  ])('parameters of a command with %s are refused', (_, parameters, message) => {
    const source = `{name: nightly, parameters: ${parameters}}`;
    const text = `schedules: [{name: a, cron: "@daily", load: {command: ${source}}}]`;
    expect(problemsOf(text)).toEqual([expect.stringMatching(message)]);
  });

  // proves: command-confined
  test('the file of commands is refused with the line of each problem', () => {
    const text = `nightly: { run: [cat, a.csv], env: [HOME], timeout: 2d }
Nightly: { run: [] }
shell: { run: cat a.csv }
more: { run: [cat], env: ["A=b"], shell: true }
`;
    const { problems } = readCommandsFile(Buffer.from(text));
    expect(problems.map(({ line, message }) => `${line} ${message}`)).toEqual([
      '1 nightly.timeout must be 1 to 86400 seconds, not "2d"',
      '2 Nightly must be 1 to 63 of a-z, 0-9, _ and -',
      '2 Nightly.run must not be empty',
      '3 shell.run must be a list, not "cat a.csv"',
      '4 more.env[0] must be the name of an environment variable; it is "A=b"',
      '4 more.shell is unknown; a command has run, timeout, env, environments',
    ]);
  });
});
