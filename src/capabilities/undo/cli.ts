import { below, defineCommand, flag, jobIdArgument, several } from '../../cli/define-command.ts';
import { noLimits } from '../../domain/guards.ts';
import { queueLoad, waitOption } from '../../load/follow.ts';
import { printPlan } from '../../load/plans/cli.ts';
import { showPlan } from '../../load/plans/plans.ts';
import { acceptUndo } from './accept.ts';

export const undoCommand = below(
  'jobs',
  defineCommand({
    name: 'undo',
    summary: 'take back what loads wrote',
    description:
      'Puts values back that loads changed, removes profiles and events that they added, and brings profiles back that they\n' +
      'removed. What somebody else has changed since stays. An undo cannot be undone: load the file again instead.',
    argument: several('<job-id...>', 'loads that have ended'),
    options: {
      plan: flag('--plan', 'only show what it would do; `sluice jobs apply` then does it'),
      wait: waitOption,
    },
    environment: true,
    json: 'print the job record as JSON',
    examples: ['sluice jobs undo 0195… --plan --wait', 'sluice jobs undo 0195… 0196… --wait'],
    run: async (invocation) => {
      const { argument, flags, json, terminal } = invocation;
      const jobIds = [...new Set(argument.map(jobIdArgument.read))];
      const caller = {
        idempotencyKey: null,
        requestId: null,
        origin: { kind: 'command_line', name: null },
      } as const;
      await queueLoad(
        invocation,
        flags.wait,
        ({ system, environmentId }) =>
          acceptUndo(system, { jobIds, plan: flags.plan, ...noLimits }, { environmentId, ...caller }),
        async ({ system, environmentId }, { jobId, plan: planned }) => {
          if (planned !== null && !json) printPlan(terminal, await showPlan(system, environmentId, jobId));
          return undefined;
        },
      );
    },
  }),
);
