import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../base/config.ts';
import { READ_BYTES } from '../../base/limits.ts';
import { formatBytes, formatCount, plural } from '../../base/wording.ts';
import type { Invocation } from '../../cli/define-command.ts';
import { below, defineCommand, required, text } from '../../cli/define-command.ts';
import { exitCodes, explainError, UsageError } from '../../cli/errors.ts';
import { findInputs, type Input } from '../../cli/input-files.ts';
import { withEnvironment } from '../../cli/session.ts';
import { type Cli, readSettings } from '../../cli/settings.ts';
import { type Columns, printable, printFields, printTable, type Terminal } from '../../cli/terminal.ts';
import { defaultLoadOptions, type FileOptions } from '../../domain/load.ts';
import { personalRule } from '../../domain/looks.ts';
import type { OptionTable } from '../../domain/option-table.ts';
import { createFileSystemStore } from '../../files/file-system.ts';
import { describeReading } from '../../load/import-file.ts';
import { withOptionsOf } from '../../load/options-of.ts';
import { localLimits } from '../../load/receive/receive.ts';
import { fileFlags, optionsOfFlag, readSourceFlags } from '../../load/source-flags.ts';
import { type RulesDocument, readDocument, rulesCommands } from '../rules/rules.ts';
import type { InspectedColumn } from './api.ts';
import { type Inspection, inspectFile, inspectorWith, renderInspection } from './inspect-file.ts';

export const inspect = defineCommand({
  name: 'inspect',
  summary: 'what a file holds, and what would become of it',
  description:
    'Looks at the beginning of a file and loads nothing: how it is written, what its columns hold and would become,\n' +
    'which records would be refused, and the first records as they would be stored. Takes the options of `import`.',
  argument: required('<file>', 'a file, or - for standard input'),
  options: ({ optionTable }) => ({ ...fileFlags(optionTable), optionsOf: optionsOfFlag }),
  environment: 'environment of the load in --options-of',
  json: 'print what POST /v1/imports/inspect answers',
  details: `Exit code: 0 the file can be loaded with these options; 2 it cannot; the
reason and possible remedies are printed.`,
  examples: [
    'sluice inspect users.csv',
    'sluice inspect kunden.csv --map "Kundennummer=user_id"',
    'sluice inspect kunden.csv --options-of 0195…',
    'sluice inspect events.ndjson.gz --json | jq .columns',
  ],
  run: async (call) => {
    const { cli, command, argument, flags, terminal, json } = call;
    const [input, ...others] = await findInputs([argument]);
    if (input === undefined || others.length > 0) throw new UsageError('Name one file.');
    const { config } = readSettings(cli, command);
    const { entity = 'auto', map, preset = null, format = null, optionsOf = null } = flags;
    const source = readSourceFlags(cli.optionTable, flags);
    const options: FileOptions = { ...defaultLoadOptions, entity, map, preset, format, source, optionsOf };
    const inspection =
      optionsOf === null
        ? await inspectInput(cli, input, config, options)
        : await withEnvironment(call, async ({ system, environmentId }) => {
            const rules = await readDocument(system.db, environmentId);
            return inspectInput(
              cli,
              input,
              config,
              await withOptionsOf(system, environmentId, options),
              rules,
            );
          });
    if (json) terminal.json(renderInspection(inspection));
    else await printInspection(call, input, inspection, flags.map);
    process.exitCode = inspection.problem === null ? exitCodes.ok : exitCodes.usage;
  },
});

export const testRules = below(
  'rules',
  defineCommand({
    name: 'test',
    summary: 'show what the rules would do to a file',
    description:
      'Looks at the beginning of a file and loads nothing: which records the rules would refuse, and what they would report or\n' +
      'leave out. Takes the options of `import`.',
    argument: required('<file>', 'a file, or - for standard input'),
    options: ({ optionTable }) => ({
      rules: text('--rules <file>', 'a rules file that is not applied yet'),
      ...fileFlags(optionTable),
    }),
    json: 'print what POST /v1/imports/inspect answers',
    examples: [
      'sluice rules test users.csv',
      'sluice rules test users.csv --rules rules.yaml --json | jq .findings',
    ],
    inEnvironment: async (call) => {
      const { cli, command, system, environmentId, argument, flags, terminal, json } = call;
      const { entity = 'auto' as const, map, preset = null, format = null } = flags;
      const [input, ...others] = await findInputs([argument]);
      if (input === undefined || others.length > 0) throw new UsageError('Name one file.');
      const { rulesOf } = await rulesCommands();
      const document = await rulesOf(flags.rules, system.db, environmentId);
      const options = { entity, map, preset, format, source: readSourceFlags(cli.optionTable, flags) };
      const inspection = await inspectInput(cli, input, readSettings(cli, command).config, options, document);
      if (json) return terminal.json(renderInspection(inspection));
      if (inspection.problem !== null) throw inspection.problem;
      const { records, whole_file: isWhole, rejects } = inspection;
      const share = isWhole ? 'all' : 'the first';
      terminal.print(`${share} ${plural(records, 'record')}: ${formatCount(rejects.count)} would be refused`);
      await printBroken(call, inspection);
    },
  }),
);

async function inspectInput(
  { rewriter }: Cli,
  input: Input,
  config: Config,
  { format, source, map, ...options }: Pick<FileOptions, 'entity' | 'map' | 'preset' | 'format' | 'source'>,
  rules: RulesDocument | null = null,
): Promise<Inspection> {
  // The inspection needs neither a database nor a data directory.
  const folder = await mkdtemp(join(tmpdir(), 'sluice-inspect-'));
  const hints = { format: format ?? undefined, map, filename: input.path ?? undefined, source };
  const bytes =
    input.path === null ? process.stdin : createReadStream(input.path, { highWaterMark: READ_BYTES });
  const { signal } = new AbortController();
  try {
    const files = createFileSystemStore(folder);
    return await inspectFile(
      files,
      bytes,
      hints,
      { ...options, map, source, rules },
      localLimits(config),
      signal,
      inspectorWith(rewriter),
    );
  } finally {
    bytes.destroy();
    await rm(folder, { recursive: true, force: true });
  }
}

type Printing = Pick<Invocation, 'cli' | 'terminal'>;

async function printInspection(
  { cli, terminal }: Printing,
  input: Input,
  inspection: Inspection,
  flagMap: Inspection['map'],
): Promise<void> {
  const { readAs, records, whole_file: isWhole, entity, columns, rejects, rows, problem } = inspection;
  const size = input.bytes === null ? '' : `, ${formatBytes(input.bytes)}`;
  printFields(terminal, { file: `${printable(input.name, 80)}${size}` });
  for (const text of describeReading({ readAs })) printFields(terminal, { 'read as': text });
  const share = isWhole ? 'all' : 'the first';
  printFields(terminal, {
    records:
      records > 0 &&
      `${share} ${formatCount(records)} were looked at, ${formatCount(rejects.count)} of them would be refused`,
    what: records > 0 && entity !== 'auto' && entity,
  });
  terminal.print('');
  printTable(terminal, inspectedColumns(cli.optionTable), columns);
  const personal = columns.flatMap(({ becomes, looks_like }) => personalRule(becomes, looks_like) ?? []);
  if (personal.length > 0) {
    terminal.print('');
    terminal.print('Some values look personal. To protect them, add these properties to the rules file:');
    for (const line of personal) terminal.print(`  ${printable(line, 100)}`);
  }
  if (rows.length > 0) {
    terminal.print('');
    terminal.print('As they would be stored:');
    printTable(
      terminal,
      {
        '>record': ({ row }) => String(row),
        kind: ({ event_type: kind }) => kind,
        ids: ({ row: _, event_type: __, metadata: ___, ...fields }) =>
          printable(Object.values(fields).filter(Boolean).join(' '), 60),
        metadata: ({ metadata }) => printable(JSON.stringify(metadata), 100),
      },
      rows,
    );
  }
  await printBroken({ cli, terminal }, inspection);
  if (problem !== null) terminal.inform(`sluice: ${explainError(problem, cli.optionTable).message}`);
  printShownWith(terminal, inspection, flagMap);
}

async function printBroken({ cli, terminal }: Printing, { rejects, findings }: Inspection): Promise<void> {
  if (rejects.count > 0) {
    terminal.print('');
    terminal.print('Refused:');
    printTable(
      terminal,
      {
        '>line': ({ line }) => String(line),
        code: ({ error_code: code }) => code,
        reason: ({ message }) => printable(cli.optionTable.withFlags(message), 80),
        record: ({ raw }) => printable(raw.trimEnd(), 60),
      },
      rejects.items,
    );
  }
  if (findings.length > 0) {
    terminal.print('');
    terminal.print('Rules that records break:');
    const { findingColumns } = await rulesCommands();
    printTable(terminal, findingColumns, findings);
  }
}

/** Prints the proposed flags, except flags that the command already has. */
function printShownWith(
  terminal: Terminal,
  { map, preset, problem }: Inspection,
  flagMap: Inspection['map'],
): void {
  if (problem === null) return;
  const proposed = Object.entries(map).filter(([name]) => !Object.hasOwn(flagMap, name));
  const flags = [
    ...proposed.map(([name, ours]) => `--map ${JSON.stringify(`${name}=${ours}`)}`),
    ...(preset === null ? [] : [`--preset ${preset}`]),
  ];
  if (flags.length > 0) terminal.inform(`Shown is what ${flags.join(' ')} would come to.`);
}

const inspectedColumns = (table: OptionTable): Columns<InspectedColumn> => ({
  column: ({ name }) => printable(name, 32),
  becomes: ({ becomes }) => becomes && printable(becomes, 40),
  type: ({ type }) => type,
  '>filled': ({ filled }) => filled,
  '>distinct': ({ distinct }) => distinct,
  samples: ({ samples }) =>
    samples
      .map((sample) => printable(typeof sample === 'string' ? sample : JSON.stringify(sample), 20))
      .join(', '),
  because: ({ reason }) => table.withFlags(reason),
});
