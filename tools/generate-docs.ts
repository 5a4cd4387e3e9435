/**
 * Generates docs/api.md, docs/api, docs/errors.md, docs/configuration.md and docs/schemas from the
 * code, and docs/proofs.md (not committed) from the tests. `--verify` writes nothing, but fails if
 * a file differs.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readConfig } from '../src/base/config.ts';
import { packageRoot } from '../src/base/package-root.ts';
import { environmentFileSchema } from '../src/capabilities/configuration/files.ts';
import { rulesFileSchema } from '../src/capabilities/rules/file.ts';
import { schedulesFileSchema } from '../src/capabilities/schedules/file.ts';
import { OptionTable } from '../src/domain/option-table.ts';
import { ExportOptions } from '../src/export/options.ts';
import { runSchema } from '../src/http/run.ts';
import { definitionsSection } from '../src/lookups/apply-definitions.ts';
import { definitionsFileSchema } from '../src/lookups/definitions.ts';
import { segmentSchema } from '../src/lookups/segments/segment.ts';
import { capabilities } from '../src/registry.ts';
import { apiPages } from './api-pages.ts';
import { configurationPage } from './configuration-page.ts';
import { describeApi } from './describe-api.ts';
import { errorsPage } from './errors-page.ts';
import { proofsPage } from './proofs.ts';

const jobOptions = {
  optionTable: new OptionTable(capabilities.flatMap(({ loads }) => loads ?? [])),
  exportOptions: new ExportOptions(capabilities.flatMap(({ exports }) => exports ?? [])),
};
const sections = await Promise.all(capabilities.flatMap(({ definitions }) => definitions?.() ?? []));
const declared = [
  definitionsSection(sections),
  ...(await Promise.all(capabilities.flatMap((each) => each.declares?.() ?? []))),
];
const environmentSchema = await environmentFileSchema(declared, {
  environment: 'default',
  config: readConfig({}),
  cli: { processEnv: {}, ...jobOptions },
});

const verify = process.argv.includes('--verify');
if (!verify) await writeFile(join(packageRoot, 'docs/proofs.md'), proofsPage());
const pages: readonly (readonly [name: string, page: string])[] = [
  ...apiPages(await describeApi()),
  ['errors.md', errorsPage()],
  ['configuration.md', configurationPage()],
  ['schemas/definitions.schema.json', `${JSON.stringify(definitionsFileSchema(sections), null, 2)}\n`],
  ['schemas/environment.schema.json', `${JSON.stringify(environmentSchema, null, 2)}\n`],
  ['schemas/rules.schema.json', `${JSON.stringify(rulesFileSchema(), null, 2)}\n`],
  ['schemas/run.schema.json', `${JSON.stringify(runSchema(), null, 2)}\n`],
  ['schemas/segment.schema.json', `${JSON.stringify(segmentSchema(), null, 2)}\n`],
  ['schemas/schedules.schema.json', `${JSON.stringify(schedulesFileSchema(jobOptions), null, 2)}\n`],
];
for (const [name, page] of pages) {
  const path = join(packageRoot, 'docs', name);
  if (!verify) await writeFile(path, page);
  else if ((await readFile(path, 'utf8').catch(() => '')) !== page) {
    process.stderr.write(`docs/${name} is not what the code says; run: npm run generate:docs\n`);
    process.exitCode = 1;
  }
}
