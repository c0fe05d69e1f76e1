// The search of pages opened as files. The index is `lutra_search_index`, written before this; the
// worker's script runs in a hidden frame, which a Worker may not.
__search.index = Promise.resolve(lutra_search_index)
window.Worker = function (url) {
  var self = this, frame = document.createElement("iframe"), queue = [], ready = false
  self.listeners = []
  frame.hidden = true
  document.body.appendChild(frame)
  var inside = frame.contentWindow
  // What the worker's script calls: it posts messages here and loads further scripts.
  inside.postMessage = function (data) {
    var event = new MessageEvent("message", {data: data})
    self.listeners.forEach(function (f) { f.call(self, event) })
    if (self.onmessage) self.onmessage(event)
  }
  inside.importScripts = function () {
    return Promise.all(Array.prototype.map.call(arguments, function (source) {
      return new Promise(function (resolve) { load(source, resolve) })
    }))
  }
  function load(source, then) {
    var script = inside.document.createElement("script")
    script.src = source
    script.onload = then
    inside.document.body.appendChild(script)
  }
  function deliver(data) { inside.dispatchEvent(new inside.MessageEvent("message", {data: data})) }
  self.addEventListener = function (type, f) { if (type === "message") self.listeners.push(f) }
  self.removeEventListener = function (type, f) {
    self.listeners = self.listeners.filter(function (g) { return g !== f })
  }
  self.postMessage = function (data) { if (ready) deliver(data); else queue.push(data) }
  self.terminate = function () { frame.remove() }
  load(url, function () {
    ready = true
    queue.splice(0).forEach(deliver)
  })
}
