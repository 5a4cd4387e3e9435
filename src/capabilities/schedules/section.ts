import { defineSection } from '../../cli/seam.ts';
import { confinementOf } from './confinement.ts';
import { definitionsOf, schedulesFile } from './file.ts';
import { planSchedules } from './keep.ts';
import type { schedulesSchema } from './schema.ts';

export const schedulesSection = defineSection<ReturnType<typeof schedulesSchema>>({
  name: 'schedules',
  open: async ({ config, environment, cli }) => ({
    file: schedulesFile(cli, await confinementOf(config, environment)),
    plan: (db, environmentId, declared, options) =>
      planSchedules(db, environmentId, definitionsOf(declared), options),
  }),
});
