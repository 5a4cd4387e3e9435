import { serveTasks } from '../base/sandbox/sandbox.ts';
import { loadTasks } from '../load/sandbox-tasks.ts';
import { capabilities } from '../registry.ts';

/* Program of a sandbox: a separate entry point that contains only the needs of a sandbox. */
const rewriter = capabilities.find((each) => each.rewriter)?.rewriter ?? null;
const capabilityTasks = await Promise.all(capabilities.map(({ sandboxTasks }) => sandboxTasks?.(rewriter)));
serveTasks(Object.assign({}, loadTasks, ...capabilityTasks));
