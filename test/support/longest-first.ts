import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Slow test files, slowest first. If they started last, only one core would be busy at the end. */
const long = [
  // budget.test.ts runs first, because it compares functions by their processor time. Files that
  // had run earlier in the same process would slow down only some of these functions.
  'test/integration/budget.test.ts',
  'test/acceptance/readme.test.ts',
  'test/acceptance/package.test.ts',
  'test/acceptance/commands.test.ts',
  'test/acceptance/start.test.ts',
  'test/capabilities/schedules/acceptance/schedules.test.ts',
  'test/acceptance/first-steps.test.ts',
  'test/capabilities/inspection/console/load.test.ts',
  'test/console/job.test.ts',
  'test/console/frame.test.ts',
  'test/console/people.test.ts',
  'test/integration/embedded-postgres.test.ts',
  'test/unit/sandbox/sandboxes.test.ts',
  'test/integration/windows.test.ts',
  'test/integration/silent-connections.test.ts',
  'test/capabilities/personal/chaos/personal-data.test.ts',
  'test/capabilities/all-or-nothing/chaos/kills.test.ts',
  'test/chaos/silent-worker.test.ts',
  'test/chaos/machines.test.ts',
];

/** Keeps vitest's order of groups and projects, but puts the slow files of each project first. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const ofProject = new Map<unknown, TestSpecification[]>();
    for (const file of await super.sort(files)) {
      ofProject.set(file.project, [...(ofProject.get(file.project) ?? []), file]);
    }
    return [...ofProject.values()].flatMap((each) => each.sort((a, b) => rank(a) - rank(b)));
  }
}

function rank({ moduleId }: TestSpecification): number {
  const at = long.findIndex((name) => moduleId.endsWith(name));
  return at === -1 ? long.length : at;
}
