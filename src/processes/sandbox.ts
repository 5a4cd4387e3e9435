import { serveTasks } from '../base/sandbox/sandbox.ts';
import { loadTasks } from '../load/sandbox-tasks.ts';
import { capabilities } from '../registry.ts';

/*
 * Program that runs in a sandbox process. It is a separate entry point that contains only the code
 * of its tasks.
 */
const rewriter = capabilities.find((each) => each.rewriter)?.rewriter ?? null;
const capabilityTasks = await Promise.all(capabilities.map(({ sandboxTasks }) => sandboxTasks?.(rewriter)));
serveTasks(Object.assign({}, loadTasks, ...capabilityTasks));
