/** All rules, by id. */
import { moduleContainerGrows } from "./l001_module_container_grows.js";
import { classContainerGrows } from "./l002_class_container_grows.js";
import { instanceContainerGrows } from "./l003_instance_container_grows.js";
import { closureContainerGrows } from "./l004_closure_container_grows.js";
import { endlessLoopContainerGrows } from "./l005_endless_loop_container_grows.js";
import { growingEntries } from "./l006_growing_entries.js";
import { cachedMethod } from "./l007_cached_method.js";
import { cachedAsync } from "./l008_cached_async.js";
import { cacheOfLargeValues } from "./l009_cache_of_large_values.js";
import { mutableDefault } from "./l010_mutable_default.js";
import { lossKeepsGraph } from "./l011_loss_keeps_graph.js";
import { outputsKeepGraph } from "./l012_outputs_keep_graph.js";
import { retainGraph } from "./l013_retain_graph.js";
import { missingZeroGrad } from "./l014_missing_zero_grad.js";
import { inferenceWithGradients } from "./l015_inference_with_gradients.js";
import { hookNeverRemoved } from "./l016_hook_never_removed.js";
import { hookStoresOutputs } from "./l017_hook_stores_outputs.js";
import { callbackNeverRemoved } from "./l018_callback_never_removed.js";
import { closureOverSelf } from "./l019_closure_over_self.js";
import { exceptionKept } from "./l020_exception_kept.js";
import { generatorKept } from "./l021_generator_kept.js";
import { taskKept } from "./l022_task_kept.js";
import { pendingTasks } from "./l023_pending_tasks.js";
import { unboundedQueue } from "./l024_unbounded_queue.js";
import { fileNotClosed } from "./l025_file_not_closed.js";
import { clientPerRequest } from "./l026_client_per_request.js";
import { poolPerRequest } from "./l027_pool_per_request.js";
import { modelPerRequest } from "./l028_model_per_request.js";
import { logHandlerPerCall } from "./l029_log_handler_per_call.js";
import { loggerPerRequest } from "./l030_logger_per_request.js";
import { metricPerRequest } from "./l031_metric_per_request.js";
import { metricLabelFromId } from "./l032_metric_label_from_id.js";
import { datasetOfObjects } from "./l033_dataset_of_objects.js";
import { wholeFileRead } from "./l034_whole_file_read.js";
import { viewPinsBase } from "./l035_view_pins_base.js";
import { concatInLoop } from "./l036_concat_in_loop.js";
import { emptyCacheInLoop } from "./l037_empty_cache_in_loop.js";
import { gcLeftDisabled } from "./l038_gc_left_disabled.js";
import { contextCaptured } from "./l039_context_captured.js";
import { requestKept } from "./l040_request_kept.js";
import { boxedNumbers } from "./l041_boxed_numbers.js";
import { figureNotClosed } from "./l042_figure_not_closed.js";
import { compiledAgain } from "./l043_compiled_again.js";
import { classPerRequest } from "./l044_class_per_request.js";
import { processNotWaited } from "./l045_process_not_waited.js";
import type { Rule } from "./rule.js";

export const RULES: readonly Rule[] = [
  moduleContainerGrows,
  classContainerGrows,
  instanceContainerGrows,
  closureContainerGrows,
  endlessLoopContainerGrows,
  growingEntries,
  cachedMethod,
  cachedAsync,
  cacheOfLargeValues,
  mutableDefault,
  lossKeepsGraph,
  outputsKeepGraph,
  retainGraph,
  missingZeroGrad,
  inferenceWithGradients,
  hookNeverRemoved,
  hookStoresOutputs,
  callbackNeverRemoved,
  closureOverSelf,
  exceptionKept,
  generatorKept,
  taskKept,
  pendingTasks,
  unboundedQueue,
  fileNotClosed,
  clientPerRequest,
  poolPerRequest,
  modelPerRequest,
  logHandlerPerCall,
  loggerPerRequest,
  metricPerRequest,
  metricLabelFromId,
  datasetOfObjects,
  wholeFileRead,
  viewPinsBase,
  concatInLoop,
  emptyCacheInLoop,
  gcLeftDisabled,
  contextCaptured,
  requestKept,
  boxedNumbers,
  figureNotClosed,
  compiledAgain,
  classPerRequest,
  processNotWaited,
];
