import type { ScheduleSettings } from '../context.ts';
import type { SourceDefinition } from '../schedule.ts';
import { openHttp } from './http.ts';
import { openLocalFiles } from './local-files.ts';
import { openPostgres } from './postgres.ts';
import { openS3 } from './s3.ts';
import type { Source } from './source.ts';

/** @throws SourceFailure */
export async function openSource(definition: SourceDefinition, settings: ScheduleSettings): Promise<Source> {
  switch (definition.kind) {
    case 'files':
      return openLocalFiles(definition, settings.localRoots);
    case 'http':
      return openHttp(definition, settings);
    case 'postgres':
      return openPostgres(definition, settings.variables);
    case 's3':
      return openS3(definition, settings.variables);
  }
}
