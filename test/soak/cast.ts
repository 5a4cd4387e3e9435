import type { Actor, Stage } from './actors/actor.ts';
import { createCancels } from './actors/cancels.ts';
import { createDeletions } from './actors/deletions.ts';
import { createDrops } from './actors/drops.ts';
import { createExports } from './actors/exports.ts';
import { createIdentify } from './actors/identify.ts';
import { createLoads } from './actors/loads.ts';
import { createTrack } from './actors/track.ts';

/**
 * Who takes part. Environments: 0 has retries, which a deletion would refuse; 2 has the deletions. No name begins with another
 * one.
 */
export function createCast(stage: Stage): readonly Actor[] {
  const tracking = createTrack(stage, { name: 'track-a', tenant: 0 });
  return [
    createLoads(stage, {
      name: 'uploads-a',
      tenant: 0,
      entity: 'users',
      formats: ['csv', 'ndjson'],
      rows: 3_000,
    }),
    createLoads(stage, {
      name: 'uploads-b',
      tenant: 1,
      entity: 'companies',
      formats: ['csv', 'ndjson'],
      rows: 2_000,
    }),
    createLoads(stage, { name: 'arrays-a', tenant: 1, entity: 'users', formats: ['array'], rows: 500 }),
    createLoads(stage, { name: 'arrays-b', tenant: 2, entity: 'companies', formats: ['array'], rows: 100 }),
    createIdentify(stage, { name: 'identify-a', tenant: 0 }),
    createIdentify(stage, { name: 'identify-b', tenant: 2 }),
    tracking,
    createTrack(stage, { name: 'track-b', tenant: 2 }),
    createExports(stage, { name: 'exports', tenant: 0, tracking }),
    createCancels(stage, { name: 'cancels', tenant: 0 }),
    createDeletions(stage, { name: 'deletions', tenant: 2 }),
    createDrops(stage, { name: 'drops', tenant: 1 }),
  ];
}
