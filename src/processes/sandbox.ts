import { serveTasks } from '../base/sandbox/sandbox.ts';
import { loadTasks } from '../load/sandbox-tasks.ts';
import { capabilities } from '../registry.ts';

/* Entry point of sandbox processes. It contains only the code of their tasks. */
const rewriter = capabilities.find((each) => each.rewriter)?.rewriter ?? null;
const capabilityTasks = await Promise.all(capabilities.map(({ sandboxTasks }) => sandboxTasks?.(rewriter)));
serveTasks(Object.assign({}, loadTasks, ...capabilityTasks));
