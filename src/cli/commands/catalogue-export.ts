import { type Command, Option } from 'commander';
import { type FileFormat, fileFormats, writeDefinitionsFile } from '../../definitions/definitions-file.ts';
import { readDefinitions, withoutIds } from '../../postgres/stores/definitions.ts';
import type { Cli } from '../cli.ts';
import { requireEnvironment, withSession } from '../session/session.ts';

interface Flags {
  readonly env: string;
  readonly format: FileFormat;
}

export function addCatalogueExportCommand(catalogue: Command, cli: Cli): void {
  catalogue
    .command('export')
    .summary('the catalogue as a file')
    .description(
      'Writes the catalogue of an environment as a file that makes the same catalogue wherever it is applied. Ids are not\n' +
        'in it: they belong to the environment.',
    )
    .addOption(new Option('--format <format>', 'of the file').choices(fileFormats).default('yaml'))
    .option('--env <name>', 'environment', 'default')
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice catalogue export > catalogue.yaml\n  $ sluice catalogue export --env a | sluice catalogue apply - --env b',
    )
    .action((flags: Flags, command: Command) => exportCatalogue(cli, command, flags));
}

async function exportCatalogue(cli: Cli, command: Command, { env, format }: Flags): Promise<void> {
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, env);
    const items = withoutIds(await readDefinitions(session.system.db, environmentId));
    await cli.terminal.write(writeDefinitionsFile(items, format));
  });
}
